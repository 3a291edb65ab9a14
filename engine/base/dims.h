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

/// Where in two strided arrays the runs of a box begin, in bytes, one run after the other.
/// `counts[0]` is the length of a run, the other counts those of the dimensions around it, the
/// fastest first.
struct RunOffsets {
  std::int64_t src = 0, dst = 0;

  /// False after the last run.
  bool next(const Dims& counts, const Dims& src_strides, const Dims& dst_strides) {
    for (std::size_t d = 1; d < counts.size(); ++d) {
      src += src_strides[d];
      dst += dst_strides[d];
      if (++at_[d] < counts[d]) return true;
      src -= src_strides[d] * counts[d];
      dst -= dst_strides[d] * counts[d];
      at_[d] = 0;
    }
    return false;
  }

 private:
  Dims at_{Dims(kMaxDims)};
};

/// Asks for the memory of runs before it is read. A patch of a large chunk has short runs, each in
/// other cache lines, and small pages between them: processors foresee few of them, and wait for
/// memory three quarters of the time that copying takes (by `perf`, runs of 192 bytes).
class RunPrefetch {
 public:
  /// `source`: where the runs are read; null: nothing is requested.
  RunPrefetch(const std::byte* source, std::int64_t run_bytes)
      : source_(source), run_bytes_(run_bytes) {}
  /// How many runs before its turn a run is requested; 0: not at all.
  std::int64_t distance() const {
    if (source_ == nullptr || run_bytes_ > kLongRun) return 0;
    return std::min(kBytesAhead / run_bytes_, kMostAhead);
  }
  void ask(std::int64_t offset) const {
    const std::byte* run = source_ + offset;
    for (std::int64_t byte = 0; byte < run_bytes_; byte += kCacheLine)
      __builtin_prefetch(run + byte);
    __builtin_prefetch(run + run_bytes_ - 1);
  }

 private:
  static constexpr std::int64_t kCacheLine = 64;
  static constexpr std::int64_t kBytesAhead = 3072;  // 4 to 64 runs of 192 bytes were as fast
  static constexpr std::int64_t kMostAhead = 64;
  static constexpr std::int64_t kLongRun = 1024;  // processors foresee the lines of longer runs

  const std::byte* source_;
  std::int64_t run_bytes_;
};

/// Calls `run(count, src_offset, src_stride, dst_offset, dst_stride)` (offsets and strides in
/// bytes) for every innermost run of a strided box. Dimensions that are contiguous on both sides
/// are joined first, so a box that is contiguous on both sides is one run. `source`, where the
/// source offsets count from, has memory that is about to be read prefetched.
template <class Run>
void for_each_run(const Dims& shape, std::int64_t src_itemsize, const Dims& src_strides,
                  std::int64_t dst_itemsize, const Dims& dst_strides, Run&& run,
                  const std::byte* source = nullptr) {
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
  const RunPrefetch prefetch(src[0] == src_itemsize ? source : nullptr, n[0] * src_itemsize);
  RunOffsets here, ahead;
  bool more = prefetch.distance() > 0;
  for (std::int64_t i = 0; i < prefetch.distance() && more; ++i) {
    prefetch.ask(ahead.src);
    more = ahead.next(n, src, dst);
  }
  do {
    if (more) {
      prefetch.ask(ahead.src);
      more = ahead.next(n, src, dst);
    }
    run(n[0], here.src, src[0], here.dst, dst[0]);
  } while (here.next(n, src, dst));
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
