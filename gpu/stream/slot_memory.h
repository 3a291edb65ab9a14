#pragma once
// Device memory for batches that other processes can map: made by cuMemCreate, handed on as a file
// descriptor. It lives until its last mapping goes, so that the end of the process that made it
// takes nothing from its readers.

#include <cstddef>
#include <memory>

namespace batchfs::gpu {

class SlotMemory {
 public:
  /// At least `size` bytes. Throws not_supported if the driver lacks such memory.
  SlotMemory(int device, std::size_t size);
  /// Maps the result of export_fd() of another process, with that memory's size. Does not take
  /// ownership of `fd`.
  static SlotMemory import_fd(int device, int fd, std::size_t size);
  ~SlotMemory();
  SlotMemory(SlotMemory&&) noexcept;
  SlotMemory& operator=(SlotMemory&&) noexcept;

  void* data() const;
  /// A multiple of the driver's granularity.
  std::size_t size() const;
  /// A new descriptor, the caller's.
  int export_fd() const;

 private:
  struct Impl;
  explicit SlotMemory(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchfs::gpu
