#pragma once
// Decodes planned batches on a GPU.
//
//   DeviceDecoder decoder(0);
//   decoder.start(plan, pinned, size, target_size);   // returns at once
//   …                                                 // other decoders run beside this one
//   for (std::uint32_t status : decoder.finish()) …   // one per chunk: kDecoded, or decode it on
//   the CPU use(decoder.target());                            // device memory, until the next
//   start
//
// A decoder is one batch in flight: a CUDA stream, device memory that grows to what its largest
// batch needs and is then kept, and the pinned memory for tables and statuses. Copies and kernels
// of different decoders overlap. The CUDA driver is loaded when the first decoder or device query
// needs it, so that a program with GPU support runs on machines that have no GPU. Errors of the
// device are Error{ErrorCode::io}; a build or a machine without CUDA is ErrorCode::not_supported.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "gpu/program/plan.h"

namespace batchfs::gpu {

/// Why there is no GPU to decode on; empty when there is one.
std::string why_no_device();
int device_count();
/// The name, as the driver gives it.
std::string device_name(int device);
std::uint64_t free_device_memory(int device);
/// All that it has. This and the next make no context on it.
std::uint64_t total_device_memory(int device);
std::array<std::uint8_t, 16> device_uuid(int device);

/// Host memory that a GPU copies from at full speed.
class PinnedBuffer {
 public:
  explicit PinnedBuffer(std::size_t size);
  ~PinnedBuffer();
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Makes such memory of a mapping that there is already, one shared with another process for
/// instance, which this process may only read. Where devices cannot have that, it stays as it is.
class PinnedMapping {
 public:
  PinnedMapping(void* data, std::size_t size);
  ~PinnedMapping();
  PinnedMapping(const PinnedMapping&) = delete;
  PinnedMapping& operator=(const PinnedMapping&) = delete;

 private:
  void* data_ = nullptr;
};

/// Milliseconds that each stage of the last batch took on the device.
struct StageTimes {
  float copy = 0, lz4 = 0, zstd_entropy = 0, zstd_frames = 0, unshuffle = 0;
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

  /// Where the decoded batch lies in device memory.
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
