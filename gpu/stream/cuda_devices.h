#pragma once
// The GPUs of this machine, and host memory that they copy from.
//
// The CUDA driver is loaded by the first call that needs it, so that a program with GPU support
// runs on machines that have no GPU. Errors of the device are Error{ErrorCode::io}; a build or a
// machine without CUDA is ErrorCode::not_supported.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace batchfs::gpu {

/// Why there is no GPU to decode on; empty if there is one.
std::string why_no_device();
int device_count();
/// The driver's name of the device.
std::string device_name(int device);
std::uint64_t free_device_memory(int device);
/// All that it has. This and the next two make no context on it.
std::uint64_t total_device_memory(int device);
std::array<std::uint8_t, 16> device_uuid(int device);
/// Why this build has no kernel that runs on the device ("not supported by this build: compute
/// capability 7.0, built for ..."); empty if it has one.
std::string why_no_kernel_for(int device);

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

/// Page-locks an existing mapping, for instance one shared with another process that this process
/// may only read. If devices do not support that, it stays unlocked.
class PinnedMapping {
 public:
  PinnedMapping(void* data, std::size_t size);
  ~PinnedMapping();
  PinnedMapping(const PinnedMapping&) = delete;
  PinnedMapping& operator=(const PinnedMapping&) = delete;

 private:
  void* data_ = nullptr;
};

}  // namespace batchfs::gpu
