#include "engine/base/dims.h"

#include <cstring>

namespace batchfs {

std::int64_t element_count(const Dims& shape) {
  std::int64_t count = 1;
  for (std::int64_t n : shape) {
    if (n == 0) return 0;
    if (__builtin_mul_overflow(count, n, &count))
      throw Error(ErrorCode::not_supported, "the shape has more than 2^63 elements");
  }
  return count;
}

Dims c_strides(const Dims& shape, std::int64_t itemsize) {
  Dims strides(shape.size());
  std::int64_t stride = itemsize;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    // A zero-length dimension makes the strides meaningless, not wrong.
    if (shape[d] > 0 && __builtin_mul_overflow(stride, shape[d], &stride))
      throw Error(ErrorCode::not_supported, "the array is larger than 2^63 bytes");
  }
  return strides;
}

bool contains(const Box& outer, const Box& inner) {
  for (std::size_t d = 0; d < inner.start.size(); ++d) {
    if (inner.start[d] < outer.start[d]) return false;
    if (inner.start[d] + inner.shape[d] > outer.start[d] + outer.shape[d]) return false;
  }
  return true;
}

Box bounding_box(const Box& a, const Box& b) {
  Box box;
  for (std::size_t d = 0; d < a.start.size(); ++d) {
    const std::int64_t start = std::min(a.start[d], b.start[d]);
    const std::int64_t end = std::max(a.start[d] + a.shape[d], b.start[d] + b.shape[d]);
    box.start.push_back(start);
    box.shape.push_back(end - start);
  }
  return box;
}

namespace {

void copy_run(std::int64_t count, std::size_t itemsize, const std::byte* src,
              std::int64_t src_stride, std::byte* dst, std::int64_t dst_stride) {
  const auto step = static_cast<std::int64_t>(itemsize);
  if (src_stride == step && dst_stride == step) {
    std::memcpy(dst, src, static_cast<std::size_t>(count) * itemsize);
    return;
  }
  auto strided = [&](auto fixed) {
    constexpr std::size_t n = decltype(fixed)::value;
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(dst + i * dst_stride, src + i * src_stride, n);
  };
  switch (itemsize) {
    case 1:
      return strided(std::integral_constant<std::size_t, 1>{});
    case 2:
      return strided(std::integral_constant<std::size_t, 2>{});
    case 4:
      return strided(std::integral_constant<std::size_t, 4>{});
    case 8:
      return strided(std::integral_constant<std::size_t, 8>{});
    default:
      for (std::int64_t i = 0; i < count; ++i)
        std::memcpy(dst + i * dst_stride, src + i * src_stride, itemsize);
  }
}

}  // namespace

void copy_strided(const Dims& shape, std::size_t itemsize, const std::byte* src,
                  const Dims& src_strides, std::byte* dst, const Dims& dst_strides) {
  const auto step = static_cast<std::int64_t>(itemsize);
  for_each_run(
      shape, step, src_strides, step, dst_strides,
      [&](std::int64_t count, std::int64_t src_offset, std::int64_t src_stride,
          std::int64_t dst_offset, std::int64_t dst_stride) {
        copy_run(count, itemsize, src + src_offset, src_stride, dst + dst_offset, dst_stride);
      },
      src);
}

void repeat_strided(const Dims& shape, std::size_t itemsize, std::byte* out, const Dims& strides,
                    const Repeat& repeat) {
  // One dimension after the other: the elements so far are copied along the next.
  Dims box = shape, there = strides;
  for (std::size_t d = repeat.counts.size(); d-- > 0;) {
    const auto with = [](std::int64_t first, const Dims& rest) {
      Dims all{first};
      for (const std::int64_t value : rest) all.push_back(value);
      return all;
    };
    const std::int64_t count = repeat.counts[d], stride = repeat.strides[d];
    if (count > 1)
      copy_strided(with(count - 1, box), itemsize, out, with(0, there), out + stride,
                   with(stride, there));
    box = with(count, box);
    there = with(stride, there);
  }
}

namespace {

template <class T>
void fill_run_of(std::int64_t count, const std::byte* element, std::byte* dst,
                 std::int64_t stride) {
  T value;
  std::memcpy(&value, element, sizeof value);
  if (stride == sizeof(T)) {  // a constant stride lets the compiler vectorise it
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(dst + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof value);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(dst + i * stride, &value, sizeof value);
}

void fill_run(std::int64_t count, std::size_t itemsize, const std::byte* element, std::byte* dst,
              std::int64_t stride) {
  switch (itemsize) {
    case 1:
      return fill_run_of<std::uint8_t>(count, element, dst, stride);
    case 2:
      return fill_run_of<std::uint16_t>(count, element, dst, stride);
    case 4:
      return fill_run_of<std::uint32_t>(count, element, dst, stride);
    case 8:
      return fill_run_of<std::uint64_t>(count, element, dst, stride);
    default:
      for (std::int64_t i = 0; i < count; ++i) std::memcpy(dst + i * stride, element, itemsize);
  }
}

}  // namespace

void fill_strided(const Dims& shape, std::size_t itemsize, const std::byte* element, std::byte* dst,
                  const Dims& dst_strides) {
  for_each_run(
      shape, 0, Dims(shape.size()), static_cast<std::int64_t>(itemsize), dst_strides,
      [&](std::int64_t count, std::int64_t, std::int64_t, std::int64_t offset,
          std::int64_t stride) { fill_run(count, itemsize, element, dst + offset, stride); });
}

}  // namespace batchfs
