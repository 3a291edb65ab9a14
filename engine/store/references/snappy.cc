#include "engine/store/references/snappy.h"

#include <cstdint>
#include <cstring>

#include "engine/base/error.h"

namespace batchfs::references {

namespace {

[[noreturn]] void damaged_snappy() {
  throw Error(ErrorCode::corrupt, "the Snappy data are damaged");
}

/// The rest of the input.
class SnappyInput {
 public:
  explicit SnappyInput(std::span<const std::byte> bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  /// A number of `count` bytes, at most four.
  std::uint32_t number(std::size_t count) {
    std::uint32_t value = 0;
    const std::span<const std::byte> bytes = take(count);
    for (std::size_t i = 0; i < count; ++i)
      value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
    return value;
  }
  std::span<const std::byte> take(std::size_t count) {
    if (count > rest_.size()) damaged_snappy();
    const std::span<const std::byte> taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace

void decode_snappy(std::span<const std::byte> bytes, std::span<std::byte> out) {
  SnappyInput in(bytes);
  std::uint64_t told = 0;
  for (int shift = 0;; shift += 7) {
    if (shift > 28) damaged_snappy();
    const std::uint32_t next = in.number(1);
    told |= std::uint64_t{next & 0x7f} << shift;
    if ((next & 0x80) == 0) break;
  }
  if (told != out.size()) damaged_snappy();
  std::size_t done = 0;
  while (!in.empty()) {
    const std::uint32_t tag = in.number(1);
    if ((tag & 3) == 0) {  // a literal
      std::size_t length = tag >> 2;
      if (length >= 60) length = in.number(length - 59);
      ++length;
      if (length > out.size() - done) damaged_snappy();
      std::memcpy(out.data() + done, in.take(length).data(), length);
      done += length;
      continue;
    }
    std::size_t length = (tag >> 2) + 1, offset = 0;
    if ((tag & 3) == 1) {
      length = ((tag >> 2) & 7) + 4;
      offset = (tag >> 5) << 8 | in.number(1);
    } else {
      offset = in.number((tag & 3) == 2 ? 2 : 4);
    }
    if (offset == 0 || offset > done || length > out.size() - done) damaged_snappy();
    for (; length > 0; --length, ++done) out[done] = out[done - offset];  // they may overlap
  }
  if (done != out.size()) damaged_snappy();
}

}  // namespace batchfs::references
