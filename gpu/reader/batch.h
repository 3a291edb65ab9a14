#pragma once
// A batch that a reader has, and the memory that it lies in.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gpu/reader/device.h"
#include "gpu/reader/schema.h"

namespace batchfs::reader {

/// Mapped memory. Pages are shared with every other reader until they are written to: a program
/// that changes a batch in place, though it should not, changes a private copy.
class Mapping {
 public:
  /// The whole of a file; the descriptor may be closed afterwards. Throws no_memory.
  static std::shared_ptr<const Mapping> of_file(int fd, std::uint64_t size);
  /// Private memory, filled by reading. Throws io, no_memory.
  static std::shared_ptr<const Mapping> read_from(int fd, std::uint64_t size);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const std::byte* data() const { return data_; }
  std::uint64_t size() const { return size_; }

 private:
  Mapping(std::byte* data, std::uint64_t size, std::uint64_t mapped)
      : data_(data), size_(size), mapped_(mapped) {}
  std::byte* data_;
  std::uint64_t size_, mapped_;
};

/// Checked against the schema: `bytes` matches shape and type, and all of it is mapped.
struct Tensor {
  const TensorInfo* info = nullptr;  // of the batch's schema
  std::vector<std::int64_t> shape;
  const std::byte* data = nullptr;  // C order; on the batch's device if it has one
  std::uint64_t bytes = 0;
};

class Coordinates;
class Windows;

/// Immutable. The memory is valid as long as this object.
struct Batch {
  std::int64_t epoch = 0;
  std::int64_t number = 0;  // global: of the epoch, over all ranks
  std::int64_t samples = 0;
  std::vector<Tensor> tensors;

  std::shared_ptr<const Schema> schema;
  std::shared_ptr<const Coordinates> coordinates;
  std::shared_ptr<const Windows> windows;  // null if an older server does not send them
  std::vector<std::shared_ptr<const Mapping>> memory;
  /// `let_go` is called when the consumer has released the batch; `release` when its memory is
  /// unmapped, after the GPU's pending work on it.
  std::function<void()> let_go, release;

  /// Device of the tensors, with `device_memory`; null for the host. `use`: the streams whose work
  /// the release waits for.
  std::shared_ptr<Device> device;
  std::vector<std::shared_ptr<const DeviceMemory>> device_memory;
  std::shared_ptr<StreamUse> use;

  Batch() = default;
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
};

/// Copies a batch in host memory to a device, and releases the original.
std::shared_ptr<Batch> copied_to(const std::shared_ptr<Device>& device,
                                 std::shared_ptr<Batch> batch);

/// The bytes of a tensor of this shape. Throws corrupt when they are not countable.
std::uint64_t bytes_of(const std::vector<std::int64_t>& shape, std::uint32_t itemsize);

}  // namespace batchfs::reader
