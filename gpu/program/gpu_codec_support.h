#pragma once
// Which of an array's codecs the GPU decodes, and in what form it leaves a chunk: byte order and
// dimension order cost nothing to undo during assembly.

#include <cstdint>
#include <string>

#include "engine/array/array.h"

namespace batchfs::gpu {

/// How a decoded chunk lies in memory.
struct ChunkForm {
  Dims strides;           // bytes, one per dimension
  std::uint8_t swap = 1;  // bytes of a word that is in the other byte order; 1: none is
};

/// The form that the CPU's decoder produces: C order, native byte order.
ChunkForm cpu_form(const Array& array);

struct GpuCodecSupport {
  enum class Kind : std::uint8_t {
    cpu,  // a codec that the GPU does not support
    raw,  // stored bytes are decoded bytes
    blosc,
    zstd,
    lz4,
    zlib,
    gzip,
  };
  Kind kind = Kind::cpu;
  std::uint32_t item = 1;  // of these bytes, shuffled before they were compressed
  ChunkForm form;
  std::string why_cpu;
};

/// Decided by the metadata alone; a stored chunk may still need the CPU.
GpuCodecSupport gpu_codec_support(const Array& array);

}  // namespace batchfs::gpu
