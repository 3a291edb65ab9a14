#pragma once
// Runs work on regions of arrays: all reads of a region, then all its writes; several regions at a
// time, as many as fit into the memory.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace batchfs {

struct RegionWork {
  std::uint64_t memory = 0;  // bytes that it holds from begin() until done()
  /// Called by the thread that runs the regions.
  std::function<void()> begin;
  /// Called on any thread; reads, and then writes, of one region at a time on several. All may
  /// throw: run_regions() then throws the first error.
  std::size_t read_count = 0, write_count = 0;
  std::function<void(std::size_t)> read, write;
  std::function<void()> done;  // after the last write; not when something was thrown
};

struct RegionLimits {
  int read_threads = 1, write_threads = 1;
  bool shared_threads = true;  // reads run on the threads for writes
  std::uint64_t memory = 0;    // bytes of all regions at a time; a larger one runs alone
};

/// `next` returns the work in order, null at the end; `tick` is called several times a second,
/// false ends early: items that have not begun are left out. Both are called by the calling thread.
/// Returns when no work runs any more; false when something was left out. Throws the first error of
/// the work.
bool run_regions(const RegionLimits& limits,
                 const std::function<std::shared_ptr<RegionWork>()>& next,
                 const std::function<bool()>& tick);

}  // namespace batchfs
