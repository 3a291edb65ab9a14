#include "gpu/reader/cuda_driver.h"

#include <dlfcn.h>

#include "engine/base/error.h"

namespace batchfs::reader::cuda {

namespace {

Driver load() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Error(ErrorCode::not_supported,
                "there is no NVIDIA driver here (libcuda.so.1 cannot be loaded); open with the "
                "device \"cpu\"");
  Driver driver{};
  const auto find = [library](auto& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr)
      throw Error(ErrorCode::not_supported,
                  std::string("the NVIDIA driver is too old: it has no ") + name);
  };
  find(driver.init, "cuInit");
  find(driver.get_error_string, "cuGetErrorString");
  find(driver.device_get_count, "cuDeviceGetCount");
  find(driver.device_get, "cuDeviceGet");
  find(driver.device_get_uuid, "cuDeviceGetUuid_v2");
  find(driver.primary_retain, "cuDevicePrimaryCtxRetain");
  find(driver.primary_release, "cuDevicePrimaryCtxRelease_v2");
  find(driver.push, "cuCtxPushCurrent_v2");
  find(driver.pop, "cuCtxPopCurrent_v2");
  find(driver.synchronize, "cuCtxSynchronize");
  find(driver.import_handle, "cuMemImportFromShareableHandle");
  find(driver.release_handle, "cuMemRelease");
  find(driver.reserve, "cuMemAddressReserve");
  find(driver.free_address, "cuMemAddressFree");
  find(driver.map, "cuMemMap");
  find(driver.unmap, "cuMemUnmap");
  find(driver.set_access, "cuMemSetAccess");
  find(driver.memory_info, "cuMemGetInfo_v2");
  find(driver.allocate, "cuMemAlloc_v2");
  find(driver.free, "cuMemFree_v2");
  find(driver.allocate_host, "cuMemAllocHost_v2");
  find(driver.free_host, "cuMemFreeHost");
  find(driver.copy_to_device, "cuMemcpyHtoDAsync_v2");
  find(driver.copy_to_host, "cuMemcpyDtoH_v2");
  find(driver.stream_create, "cuStreamCreate");
  find(driver.stream_destroy, "cuStreamDestroy_v2");
  find(driver.stream_synchronize, "cuStreamSynchronize");
  find(driver.event_create, "cuEventCreate");
  find(driver.event_destroy, "cuEventDestroy_v2");
  find(driver.event_record, "cuEventRecord");
  find(driver.event_synchronize, "cuEventSynchronize");
  const Result started = driver.init(0);
  if (started != 0) {
    const char* why = nullptr;
    driver.get_error_string(started, &why);
    throw Error(ErrorCode::not_supported, std::string("the NVIDIA driver does not start: ") +
                                              (why != nullptr ? why : "unknown error") +
                                              "; open with the device \"cpu\"");
  }
  return driver;
}

}  // namespace

const Driver& Driver::get() {
  static const Driver driver = load();  // a failed load is retried
  return driver;
}

void Driver::check(Result result, const char* what) const {
  if (result == 0) return;
  const char* why = nullptr;
  get_error_string(result, &why);
  throw Error(
      result == kOutOfMemory    ? ErrorCode::no_memory
      : result == kNotSupported ? ErrorCode::not_supported
                                : ErrorCode::io,
      std::string("the GPU failed to ") + what + ": " + (why != nullptr ? why : "unknown error"));
}

}  // namespace batchfs::reader::cuda
