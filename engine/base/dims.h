#pragma once
// Small fixed-capacity vectors of dimension lengths, indices and strides, and boxes of them.
// No allocation: plans make millions of them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "engine/base/error.h"

namespace batchfs {

/// Arrays of a store may have up to this many dimensions; tensors have a few more (sample, stacks).
inline constexpr int kMaxArrayDims = 16;
inline constexpr int kMaxDims = 20;

/// One std::int64_t per dimension, slowest first. The unit is elements unless a name says bytes.
class Dims {
 public:
  Dims() = default;
  explicit Dims(std::size_t count, std::int64_t value = 0) { resize(count, value); }
  Dims(std::initializer_list<std::int64_t> values) {
    for (std::int64_t v : values) push_back(v);
  }
  explicit Dims(std::span<const std::int64_t> values) {
    for (std::int64_t v : values) push_back(v);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::int64_t& operator[](std::size_t i) { return values_[i]; }
  std::int64_t operator[](std::size_t i) const { return values_[i]; }
  std::int64_t* begin() { return values_.data(); }
  std::int64_t* end() { return values_.data() + size_; }
  const std::int64_t* begin() const { return values_.data(); }
  const std::int64_t* end() const { return values_.data() + size_; }
  std::int64_t back() const { return values_[size_ - 1]; }

  void push_back(std::int64_t value) {
    if (size_ == kMaxDims) throw Error(ErrorCode::not_supported, "too many dimensions");
    values_[size_++] = value;
  }
  void resize(std::size_t count, std::int64_t value = 0) {
    if (count > kMaxDims) throw Error(ErrorCode::not_supported, "too many dimensions");
    for (std::size_t i = size_; i < count; ++i) values_[i] = value;
    size_ = static_cast<std::uint32_t>(count);
  }

  friend bool operator==(const Dims& a, const Dims& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  std::array<std::int64_t, kMaxDims> values_{};
  std::uint32_t size_ = 0;
};

/// Number of elements of a shape; 1 for no dimensions. Throws not_supported past 2^63 - 1.
std::int64_t element_count(const Dims& shape);

/// Strides in bytes of a C-order (row-major) array.
Dims c_strides(const Dims& shape, std::int64_t itemsize);

/// A box of elements: `start[d] <= i[d] < start[d] + shape[d]`.
struct Box {
  Dims start;
  Dims shape;

  friend bool operator==(const Box&, const Box&) = default;
  std::int64_t elements() const { return element_count(shape); }
  bool empty() const {
    return std::any_of(shape.begin(), shape.end(), [](std::int64_t n) { return n <= 0; });
  }
};

/// The whole of an array of this shape.
inline Box whole_box(const Dims& shape) { return {Dims(shape.size()), shape}; }

/// Is every element of `inner` in `outer`?
bool contains(const Box& outer, const Box& inner);

/// The smallest box that holds both.
Box bounding_box(const Box& a, const Box& b);

/// Calls `run(count, src_offset, src_stride, dst_offset, dst_stride)` (offsets and strides in
/// bytes) for every innermost run of a strided box. Dimensions that are contiguous on both sides
/// are joined first, so a box that is contiguous on both sides is one run.
template <class Run>
void for_each_run(const Dims& shape, std::int64_t src_itemsize, const Dims& src_strides,
                  std::int64_t dst_itemsize, const Dims& dst_strides, Run&& run) {
  // Joined dimensions, fastest first.
  Dims n, src, dst;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 0) return;
    if (shape[d] == 1) continue;
    if (!n.empty()) {
      const std::size_t last = n.size() - 1;
      if (src_strides[d] == src[last] * n[last] && dst_strides[d] == dst[last] * n[last]) {
        n[last] *= shape[d];
        continue;
      }
    }
    n.push_back(shape[d]);
    src.push_back(src_strides[d]);
    dst.push_back(dst_strides[d]);
  }
  if (n.empty())
    return run(std::int64_t{1}, std::int64_t{0}, src_itemsize, std::int64_t{0}, dst_itemsize);
  Dims at(n.size());
  std::int64_t src_offset = 0, dst_offset = 0;
  for (;;) {
    run(n[0], src_offset, src[0], dst_offset, dst[0]);
    std::size_t d = 1;
    for (; d < n.size(); ++d) {
      src_offset += src[d];
      dst_offset += dst[d];
      if (++at[d] < n[d]) break;
      src_offset -= src[d] * n[d];
      dst_offset -= dst[d] * n[d];
      at[d] = 0;
    }
    if (d == n.size()) return;
  }
}

/// Copies a box of elements of `itemsize` bytes between strided arrays. Strides are in bytes.
void copy_strided(const Dims& shape, std::size_t itemsize, const std::byte* src,
                  const Dims& src_strides, std::byte* dst, const Dims& dst_strides);

/// More places of a strided box: `counts[d]` of them along each further dimension, `strides[d]`
/// bytes from one to the next, the first where the box itself is.
struct Repeat {
  Dims counts, strides;

  friend bool operator==(const Repeat&, const Repeat&) = default;
};

/// Copies a box of elements of `itemsize` bytes to its other places. Strides are in bytes.
void repeat_strided(const Dims& shape, std::size_t itemsize, std::byte* out, const Dims& strides,
                    const Repeat& repeat);

/// Writes one element to every place of a strided box. Strides are in bytes.
void fill_strided(const Dims& shape, std::size_t itemsize, const std::byte* element, std::byte* dst,
                  const Dims& dst_strides);

}  // namespace batchfs
