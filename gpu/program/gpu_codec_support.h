#pragma once
// Which of an array's codecs the GPU undoes, and in what form it leaves a chunk: the byte order and
// the order of dimensions cost nothing to undo while a batch is put together.

#include <cstdint>
#include <string>

#include "engine/array/array.h"

namespace batchfs::gpu {

/// How a decoded chunk lies in memory.
struct ChunkForm {
  Dims strides;           // bytes, one per dimension
  std::uint8_t swap = 1;  // bytes of a word that is in the other byte order; 1: none is
};

/// As the CPU decodes a chunk: C order, native byte order.
ChunkForm cpu_form(const Array& array);

struct GpuCodecSupport {
  enum class Kind : std::uint8_t {
    cpu,      // something that the GPU does not do
    raw,      // stored bytes are decoded bytes
    shuffle,  // the same, shuffled by `item`
    blosc,
    zstd,
    lz4,
  };
  Kind kind = Kind::cpu;
  std::uint32_t item = 1;
  ChunkForm form;
  std::string why_cpu;
};

/// What the metadata says; a stored chunk may still turn out to be for the CPU.
GpuCodecSupport gpu_codec_support(const Array& array);

}  // namespace batchfs::gpu
