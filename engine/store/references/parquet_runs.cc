#include "engine/store/references/parquet_runs.h"

#include "engine/base/error.h"

namespace batchfs::references {

ParquetRuns::ParquetRuns(std::span<const std::byte> bytes, int width)
    : rest_(bytes), width_(width) {
  if (width > 32) throw Error(ErrorCode::corrupt, "the Parquet file is damaged: wide numbers");
}

std::uint8_t ParquetRuns::byte() {
  if (rest_.empty())
    throw Error(ErrorCode::corrupt, "the Parquet file is damaged: a page ends too early");
  const auto value = std::to_integer<std::uint8_t>(rest_.front());
  rest_ = rest_.subspan(1);
  return value;
}

void ParquetRuns::start_run() {
  while (left_ == 0) {  // an empty run takes a byte or more
    std::uint64_t head = 0;
    for (int shift = 0;; shift += 7) {
      const std::uint8_t next = byte();
      if (shift > 28) throw Error(ErrorCode::corrupt, "the Parquet file is damaged: a long run");
      head |= std::uint64_t{next & 0x7fu} << shift;
      if ((next & 0x80) == 0) break;
    }
    is_packed_ = (head & 1) != 0;
    bits_ = 0;
    held_ = 0;
    if (is_packed_) {
      left_ = (head >> 1) * 8;
      continue;
    }
    left_ = head >> 1;
    value_ = 0;
    for (int shift = 0; shift < width_; shift += 8) value_ |= std::uint32_t{byte()} << shift;
  }
}

std::uint32_t ParquetRuns::next() {
  if (left_ == 0) start_run();
  --left_;
  if (!is_packed_) return value_;
  for (; held_ < width_; held_ += 8) bits_ |= std::uint64_t{byte()} << held_;
  const auto value = static_cast<std::uint32_t>(bits_ & ((std::uint64_t{1} << width_) - 1));
  bits_ >>= width_;
  held_ -= width_;
  return value;
}

}  // namespace batchfs::references
