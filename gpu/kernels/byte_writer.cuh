#pragma once
// Writes one thread's bytes, whole words at a time where it has them all.

#include "gpu/kernels/lockstep.h"

namespace batchfs::gpu {

/// Assembles bytes into words.
class ByteWriter {
 public:
  BATCHFS_GPU explicit ByteWriter(std::uint8_t* out) : out_(out) {}

  BATCHFS_GPU void write(std::uint32_t byte) {
    const auto place = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(out_) % 4);
    if (place == 0) word_ = whole_ = 0;
    word_ |= byte << (8 * place);
    ++whole_;
    ++out_;
    if (place != 3) return;
    if (whole_ == 4)
      store_word(out_ - 4, word_);
    else
      flush();
    whole_ = 0;
  }
  /// Writes the bytes that do not fill a word yet.
  BATCHFS_GPU void flush() {
    for (; whole_ > 0; --whole_) {
      const auto place =
          static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(out_ - whole_) % 4);
      *(out_ - whole_) = static_cast<std::uint8_t>(word_ >> (8 * place));
    }
  }

 private:
  std::uint8_t* out_;
  std::uint32_t word_ = 0, whole_ = 0;
};

}  // namespace batchfs::gpu
