#pragma once
// libdeflate's decoder, for the codecs and for members of zip archives.

#include <libdeflate.h>

#include "engine/base/error.h"
#include "engine/base/per_thread.h"

namespace batchfs {

/// The calling thread's, which keeps it. Throws no_memory.
inline libdeflate_decompressor* deflate_decoder() {
  struct Decoder {
    libdeflate_decompressor* const of_library = libdeflate_alloc_decompressor();
    Decoder() {
      if (of_library == nullptr)
        throw Error(ErrorCode::no_memory, "no memory for the deflate decoder");
    }
    ~Decoder() { libdeflate_free_decompressor(of_library); }
  };
  static PerThread<Decoder> decoders;
  return decoders.get().of_library;
}

}  // namespace batchfs
