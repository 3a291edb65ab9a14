#pragma once
// Which chunks of an array were met, in memory that is accounted for.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/base/budget.h"

namespace batchfs {

/// Chunks of one array that were met. Takes memory for those, at most a bit for each of the array.
class ChunkSet {
 public:
  /// Reserves memory until what it returns is dropped; throws when there is none.
  using Reserve = std::function<std::shared_ptr<const void>(std::uint64_t bytes)>;

  explicit ChunkSet(std::int64_t chunks) : chunks_(static_cast<std::uint64_t>(chunks)) {}

  /// False when it was met before.
  bool insert(std::int64_t chunk, const Reserve& reserve);

 private:
  void grow(const Reserve& reserve);
  bool enter(std::uint64_t chunk);

  std::uint64_t chunks_;
  std::shared_ptr<const void> memory_;
  /// Bits; or numbers + 1 in open addressing, 0: free.
  bool has_bits_ = false;
  std::vector<std::uint64_t> words_;
  std::size_t count_ = 0;
};

/// Reserves memory for a list of chunks. Throws no_memory where the budget is used up.
Budget::Reservation reserve_for_list(Budget& budget, std::uint64_t bytes);
/// For a ChunkSet that lives no longer than the budget.
ChunkSet::Reserve reserve_from(Budget& budget);

}  // namespace batchfs
