#pragma once
// The structures of DLPack 1.1 (github.com/dmlc/dlpack, dlpack.h), as far as batches need them.

#include <cstdint>

namespace batchfs::dlpack {

struct Device {
  std::int32_t type;  // 1: the host, 2: CUDA
  std::int32_t id;
};
inline constexpr std::int32_t kHost = 1, kCuda = 2;

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements
  std::uint64_t byte_offset;
};

/// In capsules named "dltensor", renamed to "used_dltensor" by the consumer.
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};

struct Version {
  std::uint32_t major, minor;
};
inline constexpr std::uint64_t kReadOnly = 1, kIsCopied = 2;

/// In capsules named "dltensor_versioned".
struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};

}  // namespace batchfs::dlpack
