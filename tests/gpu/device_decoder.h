#pragma once
// Decodes planned batches on a GPU without the rest of batchfs, for tests and benchmarks of the
// kernels.
//
//   DeviceDecoder decoder(0);
//   decoder.start(plan, pinned, size, target_size);   // returns at once
//   ...                                               // other decoders run beside this one
//   for (std::uint32_t status : decoder.finish()) ... // one per chunk: kDecoded or the reason
//
// A decoder is one batch in flight: a CUDA stream, device memory that grows to the needs of its
// largest batch and is then kept, and the pinned memory for tables and statuses. Copies and kernels
// of different decoders overlap. Errors of the device are Error{ErrorCode::io}.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "gpu/program/plan.h"

namespace batchfs::gpu {

/// Milliseconds that each stage of the last batch took on the device.
struct StageTimes {
  float copy = 0, lz4 = 0, deflate = 0, zstd_entropy = 0, zstd_frames = 0, unshuffle = 0;
};

class DeviceDecoder {
 public:
  enum class Timing { off, on };

  explicit DeviceDecoder(int device, Timing timing = Timing::off);
  ~DeviceDecoder();
  DeviceDecoder(const DeviceDecoder&) = delete;
  DeviceDecoder& operator=(const DeviceDecoder&) = delete;

  /// Copies source[0, size), the plan's source area, to the device and decodes it into target_size
  /// bytes. The plan may go at once; the source must stay until finish(). A finished plan only.
  void start(const DecodePlan& plan, const std::byte* source, std::size_t size,
             std::size_t target_size);
  /// Waits for the batch; a status per chunk, valid until the next start.
  std::span<const std::uint32_t> finish();

  /// Address of the decoded batch in device memory.
  void* target() const;
  /// Copies decoded bytes to the host. After finish().
  void read(std::size_t offset, std::span<std::byte> to) const;
  /// After finish(), with timing.
  StageTimes times() const;
  /// Device memory that this decoder holds, in bytes.
  std::size_t memory() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchfs::gpu
