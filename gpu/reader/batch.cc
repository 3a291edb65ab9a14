#include "gpu/reader/batch.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace batchfs::reader {

namespace {

/// File systems in memory report their page size as the block size; others report at most this.
constexpr std::uint64_t kSmallPages = 1 << 20;

void* map(std::uint64_t size, int flags, int fd) {
  void* data =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | flags, fd, 0);
  // Where copies that are never made count as memory that is used (vm.overcommit_memory = 2).
  if (data == MAP_FAILED && errno == ENOMEM && fd >= 0)
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | flags, fd, 0);
  if (data == MAP_FAILED)
    throw Error(ErrorCode::no_memory, std::string("mapping a batch: ") + std::strerror(errno));
  return data;
}

}  // namespace

std::shared_ptr<const Mapping> Mapping::of_file(int fd, std::uint64_t size) {
  // Touching pages after a file's end kills a process.
  struct stat at;
  if (::fstat(fd, &at) != 0 || static_cast<std::uint64_t>(at.st_size) < size)
    throw Error(ErrorCode::corrupt, "a batch's memory is shorter than it should be");
  if (size == 0) return std::shared_ptr<const Mapping>(new Mapping(nullptr, 0, 0));
  // The kernel maps a huge page as one only if all of it is mapped, also after the file's end.
  const auto block = static_cast<std::uint64_t>(at.st_blksize);
  const std::uint64_t mapped = block > kSmallPages ? (size + block - 1) / block * block : size;
  return std::shared_ptr<const Mapping>(
      new Mapping(static_cast<std::byte*>(map(mapped, 0, fd)), size, mapped));
}

std::shared_ptr<const Mapping> Mapping::read_from(int fd, std::uint64_t size) {
  if (size == 0) return std::shared_ptr<const Mapping>(new Mapping(nullptr, 0, 0));
  std::shared_ptr<const Mapping> mapping(
      new Mapping(static_cast<std::byte*>(map(size, MAP_ANONYMOUS, -1)), size, size));
  for (std::uint64_t at = 0; at < size;) {
    const ssize_t got = ::pread(fd, mapping->data_ + at, size - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw Error(ErrorCode::io, std::string("reading a batch: ") + std::strerror(errno));
    if (got == 0) throw Error(ErrorCode::corrupt, "a batch's file is shorter than it should be");
    at += static_cast<std::uint64_t>(got);
  }
  return mapping;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, mapped_);
}

Batch::~Batch() {
  if (let_go) let_go();
  if (device == nullptr) {
    memory.clear();
    if (release) release();
    return;
  }
  device->after(use,
                [pieces = std::move(device_memory), given_back = std::move(release)]() mutable {
                  pieces.clear();
                  if (given_back) given_back();
                });
}

std::shared_ptr<Batch> copied_to(const std::shared_ptr<Device>& device,
                                 std::shared_ptr<Batch> batch) {
  constexpr std::uint64_t kAlignment = 256;
  std::uint64_t size = 0;
  for (const Tensor& tensor : batch->tensors)
    size += (tensor.bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto copy = std::make_shared<Batch>();
  copy->epoch = batch->epoch;
  copy->number = batch->number;
  copy->samples = batch->samples;
  copy->schema = batch->schema;
  copy->coordinates = batch->coordinates;
  copy->windows = batch->windows;
  copy->use = device->new_use();
  copy->device_memory.push_back(device->allocate(size));
  copy->device = device;
  const DeviceMemory& memory = *copy->device_memory.front();
  std::uint64_t offset = 0;
  for (const Tensor& tensor : batch->tensors) {
    device->upload(memory, offset, {tensor.data, tensor.bytes});
    copy->tensors.push_back({tensor.info, tensor.shape, memory.data() + offset, tensor.bytes});
    offset += (tensor.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  return copy;
}

std::uint64_t bytes_of(const std::vector<std::int64_t>& shape, std::uint32_t itemsize) {
  std::uint64_t bytes = itemsize;
  for (const std::int64_t n : shape)
    if (n < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(n), &bytes) ||
        bytes > INT64_MAX)
      throw Error(ErrorCode::corrupt, "a tensor's shape is impossible");
  return bytes;
}

}  // namespace batchfs::reader
