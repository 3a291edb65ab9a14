#pragma once
// Dims and boxes for long lists: as small as their usual number of dimensions.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/base/dims.h"

namespace batchfs {

/// Up to kInline dimensions are in the object, more on the heap. Converts from and to Dims.
class ShortDims {
 public:
  static constexpr std::size_t kInline = 4;

  ShortDims() = default;
  ShortDims(const Dims& dims) { assign(dims.begin(), dims.size()); }  // NOLINT: implicit
  ShortDims(const ShortDims& other) { assign(other.begin(), other.size()); }
  ShortDims(ShortDims&& other) noexcept { take(other); }
  ShortDims& operator=(const ShortDims& other) {
    if (this != &other) *this = ShortDims(other);
    return *this;
  }
  ShortDims& operator=(ShortDims&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~ShortDims() { release(); }

  operator Dims() const {  // NOLINT: implicit
    Dims dims;
    for (const std::int64_t value : *this) dims.push_back(value);
    return dims;
  }

  std::size_t size() const { return size_; }
  std::int64_t& operator[](std::size_t i) { return begin()[i]; }
  std::int64_t operator[](std::size_t i) const { return begin()[i]; }
  std::int64_t* begin() { return is_short() ? values_ : more_; }
  std::int64_t* end() { return begin() + size_; }
  const std::int64_t* begin() const { return is_short() ? values_ : more_; }
  const std::int64_t* end() const { return begin() + size_; }

 private:
  bool is_short() const { return size_ <= kInline; }
  void assign(const std::int64_t* values, std::size_t size) {
    size_ = static_cast<std::uint32_t>(size);
    if (!is_short()) more_ = new std::int64_t[size];
    std::copy_n(values, size, begin());
  }
  void take(ShortDims& other) {
    std::copy_n(other.values_, kInline, values_);
    size_ = other.size_;
    other.size_ = 0;
  }
  void release() {
    if (!is_short()) delete[] more_;
    size_ = 0;
  }

  union {
    std::int64_t values_[kInline] = {};
    std::int64_t* more_;  // of more dimensions
  };
  std::uint32_t size_ = 0;
};

/// A Box with ShortDims.
struct ShortBox {
  ShortDims start;
  ShortDims shape;

  ShortBox() = default;
  ShortBox(const Box& box) : start(box.start), shape(box.shape) {}  // NOLINT: implicit
  operator Box() const { return {start, shape}; }                   // NOLINT: implicit
  std::int64_t elements() const { return element_count(shape); }
};

}  // namespace batchfs
