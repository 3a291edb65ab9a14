#pragma once
// The last seconds of the pipeline as spans: fetches, decoding and assembly, for which batch, and
// how long readers waited for it.
//
//   Trace trace;
//   const std::uint64_t began = Trace::now();
//   ...
//   trace.add({.kind = Trace::Kind::decode, .begin = began, .of = batch}, "t2m", {3, 0, 0});
//
// Always on: an event costs two looks at the clock and a copy of 128 bytes into a ring of its
// processor. The rings have the size set at the start, and overwrite the oldest events. Batches
// have rings of their own, or a store of many small chunks would push them out.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/dims.h"

namespace batchfs {

/// Thread-safe.
class Trace {
 public:
  enum class Kind : std::uint8_t { fetch, decode, assemble, wait };
  enum class End : std::uint8_t { done, failed, left };  // left: nobody wants it any more

  /// The batch that something is done for. Rank -1: none, but a reader of an array.
  struct Batch {
    std::uint32_t view = 0;  // a name()
    std::int32_t rank = -1, world = 0;
    std::int64_t epoch = 0, batch = 0;  // the global batch
  };

  struct Event {
    Kind kind = Kind::fetch;
    End end = End::done;
    std::uint64_t begin = 0;     // nanoseconds, as returned by now()
    std::uint64_t duration = 0;  // nanoseconds; add() sets it
    std::uint64_t bytes = 0;     // fetched, decoded, of the batch
    Batch of;
    std::uint8_t chunk_size = 0;
    char chunk_text[71];  // not set beyond chunk_size
    /// "t2m/3.0.0"; of a long path only the end. Empty for batches.
    std::string_view chunk() const { return {chunk_text, chunk_size}; }
  };

  /// About `bytes` in all, which are taken from the system as they are first used.
  explicit Trace(std::size_t bytes = 4 << 20);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// CLOCK_MONOTONIC.
  static std::uint64_t now();

  /// A number for a view's name, the same for the same name. 0, the empty name, once there are too
  /// many.
  std::uint32_t name(std::string_view name);

  /// Ends `event`, of a batch, now.
  void add(Event event);
  /// The same, of a chunk.
  void add(Event event, std::string_view array, const Dims& chunk);

  struct Snapshot {
    std::vector<Event> events;       // by when they began
    std::vector<std::string> names;  // by Batch::view
  };
  /// Returns the events that ended in the last `nanoseconds`; for batches and for chunks, only as
  /// far back as no event was overwritten.
  Snapshot last(std::uint64_t nanoseconds) const;

 private:
  struct Ring;
  static constexpr std::size_t kGroups = 2;  // chunks, batches

  const std::size_t processors_;
  std::unique_ptr<Ring[]> rings_;  // of the first group's processors, then of the second's
  /// Guards the members below. No other lock is taken with it held, or with a ring's.
  mutable std::mutex names_mutex_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace batchfs
