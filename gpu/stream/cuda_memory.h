#pragma once
// CUDA's calls as this folder uses them. For .cu files.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/base/error.h"

namespace batchfs::gpu {

inline void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw Error(result == cudaErrorMemoryAllocation ? ErrorCode::no_memory : ErrorCode::io,
              std::string("the GPU failed to ") + what + ": " + cudaGetErrorString(result));
}

enum class Memory { device, pinned };

/// Memory that grows and is kept.
template <Memory kWhere>
class Growing {
 public:
  Growing() = default;
  Growing(const Growing&) = delete;
  Growing& operator=(const Growing&) = delete;
  ~Growing() { free(); }

  void reserve(std::size_t size) {
    if (size <= size_) return;
    free();
    const std::size_t rounded = (size + size / 8 + 255) / 256 * 256;
    check(kWhere == Memory::device ? cudaMalloc(&data_, rounded) : cudaMallocHost(&data_, rounded),
          "allocate memory");
    size_ = rounded;
  }
  template <class T = std::uint8_t>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::size_t size() const { return size_; }

 private:
  void free() {
    if (data_ != nullptr) kWhere == Memory::device ? cudaFree(data_) : cudaFreeHost(data_);
    data_ = nullptr;
    size_ = 0;
  }

  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace batchfs::gpu
