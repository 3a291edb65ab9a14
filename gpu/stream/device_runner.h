#pragma once
// Runs programs (program.h) on a GPU: the areas in device memory, and a few lanes, streams with
// scratch memory of their own, so that copies and kernels of different programs overlap. All memory
// is allocated at the beginning.
//
//   DeviceRunner runner({.device = 0, .sizes = sizes, .staging = staging, .batch = slots},
//   conversions, constants); runner.start(program);                       // one thread; in the
//   order of numbers const auto statuses = runner.finish(number); // another; in order, waits
//
// Errors of the device are Error{io}, too little memory is Error{no_memory}.

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
  /// Waits for what runs.
  ~DeviceRunner();
  DeviceRunner(const DeviceRunner&) = delete;
  DeviceRunner& operator=(const DeviceRunner&) = delete;

  /// Waits while too many programs run. A program of this process, or one that was checked.
  void start(const Program& program);
  /// A status per chunk, once all is done.
  std::vector<std::uint32_t> finish(std::uint64_t number);
  /// From here on start() throws interrupted.
  void stop();

  /// What `stream`, a cudaStream_t of this process, has to do now comes before the next use of the
  /// slot.
  void released(std::uint32_t slot, void* stream);

  /// Copies to the batch area, and waits.
  void upload(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Copies from the batch area, for tests.
  void download(std::uint64_t offset, std::span<std::byte> bytes) const;

  /// Device memory that this holds, without the slots.
  std::uint64_t memory() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchfs::gpu
