#include "gpu/stream/cuda_devices.h"

#include <cstring>

#include "gpu/stream/architectures.h"
#include "gpu/stream/cuda_memory.h"

namespace batchfs::gpu {

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string why_no_device() {
  int driver = 0, count = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    return "there is no NVIDIA driver here";
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) return cudaGetErrorString(result);
  return count > 0 ? "" : "the machine has no GPU";
}

std::uint64_t total_device_memory(int device) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), "say its memory");
  return properties.totalGlobalMem;
}

std::array<std::uint8_t, 16> device_uuid(int device) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), "say its UUID");
  std::array<std::uint8_t, 16> uuid;
  static_assert(sizeof properties.uuid == sizeof uuid);
  std::memcpy(uuid.data(), &properties.uuid, sizeof uuid);
  return uuid;
}

std::string why_no_kernel_for(int device) {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "be asked");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "be asked");
  return why_no_kernel(BATCHFS_CUDA_ARCHITECTURES, {major, minor});
}

std::string device_name(int device) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), "say its name");
  return properties.name;
}

std::uint64_t free_device_memory(int device) {
  std::size_t free = 0, total = 0;
  check(cudaSetDevice(device), "be chosen");
  check(cudaMemGetInfo(&free, &total), "say its memory");
  return free;
}

PinnedBuffer::PinnedBuffer(std::size_t size) : size_(size) {
  void* data = nullptr;
  check(cudaMallocHost(&data, size), "pin host memory");
  data_ = static_cast<std::byte*>(data);
}

PinnedBuffer::~PinnedBuffer() { cudaFreeHost(data_); }

PinnedMapping::PinnedMapping(void* data, std::size_t size) : data_(data) {
  const cudaError_t result = cudaHostRegister(data, size, cudaHostRegisterReadOnly);
  if (result == cudaErrorNotSupported) {  // copies from it are slower then, and no different
    cudaGetLastError();
    data_ = nullptr;
  } else {
    check(result, "pin host memory");
  }
}

PinnedMapping::~PinnedMapping() {
  if (data_ != nullptr) cudaHostUnregister(data_);
}

}  // namespace batchfs::gpu
