#pragma once
// The GPU that a reader wants its batches on. The only part of the reader that knows the CUDA
// driver, which is loaded here, by name, when a reader asks for a GPU: the library needs no CUDA to
// be built or installed.
//
// A batch on a GPU is released after the work that the consumer has
// queued: its streams are noted as tensors are handed out, an event is recorded on them when the
// batch goes, and a thread waits for the event. Events are kept and used again.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace batchfs::reader {

/// Memory of a device. Its end unmaps it.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// An address of the device.
  virtual std::byte* data() const = 0;
  virtual std::uint64_t size() const = 0;
};

/// The streams that read a batch: cudaStream_t as DLPack passes them on, of which 0 and 1 are the
/// legacy default. Thread-safe.
class StreamUse {
 public:
  /// Unknown stream: all of the device's work counts.
  static constexpr std::uintptr_t kAny = ~std::uintptr_t{0};

  virtual ~StreamUse() = default;
  virtual void note(std::uintptr_t stream) = 0;
};

/// Thread-safe. Belongs to the process that opened it: a child after fork() cannot use it.
class Device : public std::enable_shared_from_this<Device> {
 public:
  /// Opens "cuda" or "cuda:N", with the numbers of CUDA_VISIBLE_DEVICES. Throws invalid_argument,
  /// not_supported if there is no driver or no such GPU.
  static std::shared_ptr<Device> open(const std::string& name);
  virtual ~Device() = default;

  virtual int number() const = 0;
  virtual std::span<const std::uint8_t, 16> uuid() const = 0;
  /// Bytes of free memory.
  virtual std::uint64_t free_memory() = 0;

  /// Maps memory that another process exported. Does not take ownership of `fd`. Throws
  /// not_supported, no_memory, io.
  virtual std::shared_ptr<const DeviceMemory> map(int fd, std::uint64_t size) = 0;
  /// Memory of this process; kept for the next of its size when it goes.
  virtual std::shared_ptr<const DeviceMemory> allocate(std::uint64_t size) = 0;
  /// Copies from the host, and waits.
  virtual void upload(const DeviceMemory& to, std::uint64_t offset,
                      std::span<const std::byte> bytes) = 0;
  /// Copies to the host, after the pending work of its default stream, and waits.
  virtual void download(const std::byte* from, std::span<std::byte> to) = 0;

  virtual std::shared_ptr<StreamUse> new_use() = 0;
  /// Calls `release` once all work noted in `use` has ended: soon, from any thread. Work lost with
  /// the device counts as ended.
  virtual void after(const std::shared_ptr<StreamUse>& use, std::function<void()> release) = 0;
};

}  // namespace batchfs::reader
