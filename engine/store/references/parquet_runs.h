#pragma once
// Parquet's hybrid of run lengths and packed bits: definition levels, and numbers of a dictionary.
//
// Source: apache/parquet-format Encodings.md, "Run Length Encoding / Bit-Packing Hybrid".

#include <cstddef>
#include <cstdint>
#include <span>

namespace batchfs::references {

/// Not thread-safe.
class ParquetRuns {
 public:
  /// Views `bytes`. Throws corrupt for more than 32 bits.
  ParquetRuns(std::span<const std::byte> bytes, int width);
  /// Throws corrupt at the end of the bytes.
  std::uint32_t next();

 private:
  void start_run();
  std::uint8_t byte();

  std::span<const std::byte> rest_;
  const int width_;
  std::uint64_t left_ = 0;  // values of the run
  bool is_packed_ = false;
  std::uint32_t value_ = 0;  // of a run of equal ones
  std::uint64_t bits_ = 0;   // of packed ones, the next lowest
  int held_ = 0;             // bits there
};

}  // namespace batchfs::references
