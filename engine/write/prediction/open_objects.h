#pragma once
// Samples of objects that are not complete yet, in memory up to a budget.

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "engine/write/prediction/sample_fold.h"

namespace batchfs {

struct ObjectKey {
  std::size_t array;
  std::int64_t number;

  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

/// Thread-safe.
class OpenObjects {
 public:
  explicit OpenObjects(std::uint64_t memory) : memory_(memory) {}

  /// Samples of this object that are in parts.
  void note_parts(const ObjectKey& key, std::set<std::int64_t> samples);

  struct Taken {
    ObjectKey key;
    ObjectSamples samples;
  };
  /// Adds a sample's values, in place of earlier ones. Returns the object's samples in memory once
  /// these and parts are `expected` samples.
  std::optional<Taken> add(const ObjectKey& key, std::int64_t sample, Buffer values,
                           std::uint32_t expected);
  /// The oldest object while all take more than the budget. Its samples count as being in parts.
  std::optional<Taken> take_excess();
  std::optional<Taken> take_oldest();

  /// Memory of a sample beside its values [bytes].
  static constexpr std::uint64_t kSampleBytes = 96;

 private:
  struct Open {
    std::uint64_t age;
    ObjectSamples samples;
    std::size_t in_parts_too = 0;  // of these samples
  };
  using Iterator = std::map<ObjectKey, Open>::iterator;
  Taken take(Iterator found);
  Iterator oldest();

  const std::uint64_t memory_;
  std::mutex mutex_;  // guards the fields below
  std::map<ObjectKey, Open> open_;
  std::map<std::uint64_t, ObjectKey> by_age_;
  std::map<ObjectKey, std::set<std::int64_t>> in_parts_;
  std::uint64_t last_age_ = 0, held_ = 0;
};

}  // namespace batchfs
