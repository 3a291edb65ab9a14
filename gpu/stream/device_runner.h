#pragma once
// Runs programs (program.h) on a GPU: the areas in device memory, and a few lanes (streams with
// their own scratch memory), so that copies and kernels of different programs overlap. All memory
// is allocated at the beginning.
//
//   DeviceRunner runner({.device = 0, .sizes = sizes, .staging = staging, .batch = slots},
//                       conversions, constants);
//   runner.start(program);                        // one thread; in the order of numbers
//   const auto statuses = runner.finish(number);  // another; in order, waits
//
// Device errors are Error{io}; too little memory is Error{no_memory}.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/program/program.h"

namespace batchfs::gpu {

class DeviceRunner {
 public:
  struct Options {
    int device = 0;
    AreaSizes sizes;
    int lanes = 4;
    const std::byte* staging = nullptr;  // pinned
    void* batch = nullptr;               // device memory of sizes.batch bytes
    std::uint32_t slots = 1;
  };
  DeviceRunner(const Options& options, std::span<const Conversion> conversions,
               std::span<const std::byte> constants);
  /// Waits for running programs.
  ~DeviceRunner();
  DeviceRunner(const DeviceRunner&) = delete;
  DeviceRunner& operator=(const DeviceRunner&) = delete;

  /// Starts a program of this process, or one that was checked. Waits while too many programs run.
  void start(const Program& program);
  /// Waits for a program. Returns a status per chunk.
  std::vector<std::uint32_t> finish(std::uint64_t number);
  /// From now on start() throws interrupted.
  void stop();

  /// The next use of the slot waits for the work now queued on `stream`, a cudaStream_t of this
  /// process.
  void released(std::uint32_t slot, void* stream);

  /// Copies to the batch area, and waits.
  void upload(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Copies from the batch area. For tests.
  void download(std::uint64_t offset, std::span<std::byte> bytes) const;

  /// Device memory that this holds, without the slots.
  std::uint64_t memory() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchfs::gpu
