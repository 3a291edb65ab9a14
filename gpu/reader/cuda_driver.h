#pragma once
// The CUDA driver's functions that the reader uses, found in libcuda.so.1 at run time. Types and
// numbers are those of cuda.h (12.0), whose layout the driver keeps.

#include <cstddef>
#include <cstdint>
#include <string>

namespace batchfs::reader::cuda {

using Result = int;
using DeviceNumber = int;
using Address = unsigned long long;
using Handle = unsigned long long;
using Context = struct ContextOpaque*;
using Stream = struct StreamOpaque*;
using Event = struct EventOpaque*;

inline constexpr Result kOutOfMemory = 2, kDeinitialized = 4, kNotSupported = 801;
inline constexpr unsigned kEventBlockingSync = 1, kEventDisableTiming = 2, kStreamNonBlocking = 1;
inline constexpr int kPosixDescriptor = 1;  // CUmemAllocationHandleType
inline constexpr int kLocationDevice = 1;   // CUmemLocationType
inline constexpr unsigned long long kRead = 1, kReadWrite = 3;
inline const Stream kLegacyStream = reinterpret_cast<Stream>(1);

struct Uuid {
  std::uint8_t bytes[16];
};
struct AccessDescription {  // CUmemAccessDesc
  int location_type, location_id;
  int flags;
};

struct Driver {
  Result (*init)(unsigned);
  Result (*get_error_string)(Result, const char**);
  Result (*device_get_count)(int*);
  Result (*device_get)(DeviceNumber*, int);
  Result (*device_get_uuid)(Uuid*, DeviceNumber);
  Result (*primary_retain)(Context*, DeviceNumber);
  Result (*primary_release)(DeviceNumber);
  Result (*push)(Context);
  Result (*pop)(Context*);
  Result (*synchronize)();
  Result (*import_handle)(Handle*, void*, int);
  Result (*release_handle)(Handle);
  Result (*reserve)(Address*, std::size_t, std::size_t, Address, unsigned long long);
  Result (*free_address)(Address, std::size_t);
  Result (*map)(Address, std::size_t, std::size_t, Handle, unsigned long long);
  Result (*unmap)(Address, std::size_t);
  Result (*set_access)(Address, std::size_t, const AccessDescription*, std::size_t);
  Result (*memory_info)(std::size_t*, std::size_t*);
  Result (*allocate)(Address*, std::size_t);
  Result (*free)(Address);
  Result (*allocate_host)(void**, std::size_t);
  Result (*free_host)(void*);
  Result (*copy_to_device)(Address, const void*, std::size_t, Stream);
  Result (*copy_to_host)(void*, Address, std::size_t);
  Result (*stream_create)(Stream*, unsigned);
  Result (*stream_destroy)(Stream);
  Result (*stream_synchronize)(Stream);
  Result (*event_create)(Event*, unsigned);
  Result (*event_destroy)(Event);
  Result (*event_record)(Event, Stream);
  Result (*event_synchronize)(Event);

  /// Loaded once a process. Throws not_supported, naming the missing library or function.
  static const Driver& get();
  /// Throws the error that `result` stands for: "the GPU failed to WHAT".
  void check(Result result, const char* what) const;
};

}  // namespace batchfs::reader::cuda
