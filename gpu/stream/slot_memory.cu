#include "gpu/stream/slot_memory.h"

#include <cuda.h>

#include "gpu/stream/cuda_memory.h"

namespace batchfs::gpu {

namespace {

/// The driver's functions by name: the program is not linked with the driver. Null when it has
/// none, or is gone, as at the end of a process.
template <class Function>
Function find_in_driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
  return result == cudaSuccess && found == cudaDriverEntryPointSuccess
             ? reinterpret_cast<Function>(function)
             : nullptr;
}

template <class Function>
Function driver(const char* name) {
  const auto function = find_in_driver<Function>(name);
  if (function == nullptr)
    throw Error(ErrorCode::not_supported, std::string("the CUDA driver has no ") + name);
  return function;
}

void check_driver(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  throw Error(result == CUDA_ERROR_OUT_OF_MEMORY   ? ErrorCode::no_memory
              : result == CUDA_ERROR_NOT_SUPPORTED ? ErrorCode::not_supported
                                                   : ErrorCode::io,
              std::string("the GPU failed to ") + what + " (CUDA driver error " +
                  std::to_string(static_cast<int>(result)) + ")");
}

CUmemAllocationProp properties_of(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

}  // namespace

struct SlotMemory::Impl {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  std::size_t size = 0;
  bool has_handle = false, is_mapped = false;

  ~Impl() {
    const auto unmap = find_in_driver<decltype(&cuMemUnmap)>("cuMemUnmap");
    const auto free = find_in_driver<decltype(&cuMemAddressFree)>("cuMemAddressFree");
    const auto release = find_in_driver<decltype(&cuMemRelease)>("cuMemRelease");
    if (is_mapped && unmap != nullptr) unmap(address, size);
    if (address != 0 && free != nullptr) free(address, size);
    if (has_handle && release != nullptr) release(handle);
  }

  void map(int device) {
    check_driver(
        driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve")(&address, size, 0, 0, 0),
        "reserve addresses");
    check_driver(driver<decltype(&cuMemMap)>("cuMemMap")(address, size, 0, handle, 0),
                 "map memory");
    is_mapped = true;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    check_driver(driver<decltype(&cuMemSetAccess)>("cuMemSetAccess")(address, size, &access, 1),
                 "open memory");
  }
};

SlotMemory::SlotMemory(int device, std::size_t size) : impl_(std::make_unique<Impl>()) {
  check(cudaSetDevice(device), "be chosen");
  check(cudaFree(nullptr), "start");  // the driver's calls need a context
  const CUmemAllocationProp properties = properties_of(device);
  std::size_t granularity = 0;
  check_driver(driver<decltype(&cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity")(
                   &granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
               "say its granularity");
  impl_->size = (size + granularity - 1) / granularity * granularity;
  check_driver(
      driver<decltype(&cuMemCreate)>("cuMemCreate")(&impl_->handle, impl_->size, &properties, 0),
      "allocate memory");
  impl_->has_handle = true;
  impl_->map(device);
}

SlotMemory SlotMemory::import_fd(int device, int fd, std::size_t size) {
  check(cudaSetDevice(device), "be chosen");
  check(cudaFree(nullptr), "start");
  auto impl = std::make_unique<Impl>();
  impl->size = size;
  check_driver(driver<decltype(&cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle")(
                   &impl->handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
               "take over memory");
  impl->has_handle = true;
  impl->map(device);
  return SlotMemory(std::move(impl));
}

SlotMemory::SlotMemory(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SlotMemory::~SlotMemory() = default;
SlotMemory::SlotMemory(SlotMemory&&) noexcept = default;
SlotMemory& SlotMemory::operator=(SlotMemory&&) noexcept = default;

void* SlotMemory::data() const { return reinterpret_cast<void*>(impl_->address); }
std::size_t SlotMemory::size() const { return impl_->size; }

int SlotMemory::export_fd() const {
  int fd = -1;
  check_driver(driver<decltype(&cuMemExportToShareableHandle)>("cuMemExportToShareableHandle")(
                   &fd, impl_->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
               "hand memory on");
  return fd;
}

}  // namespace batchfs::gpu
