#include "engine/write/blend.h"

#include <algorithm>
#include <optional>
#include <type_traits>

namespace batchfs {

namespace {

template <class T>
using Sum = std::conditional_t<sizeof(T) == 4, double, long double>;

/// The values of a box in one row of the region. By index along the row minus `start`.
template <class T>
struct RowPart {
  std::int64_t start, end;
  const T* values;
  const double* weights;  // null: 1
  double outer;           // the product of the other dimensions' weights

  bool covers(std::int64_t begin) const { return start <= begin && begin < end; }
};

/// The row `at`; the last dimension's index is not used.
template <class T>
std::optional<RowPart<T>> row_of(const WeightedBox<T>& one, const Dims& at) {
  const std::size_t last = at.size() - 1;
  double outer = 1;
  std::int64_t row = 0;
  for (std::size_t d = 0; d < last; ++d) {
    const std::int64_t inside = at[d] - one.box.start[d];
    if (inside < 0 || inside >= one.box.shape[d]) return std::nullopt;
    if (one.weights[d] != nullptr) outer *= one.weights[d][inside];
    row = row * one.box.shape[d] + inside;
  }
  const std::int64_t start = one.box.start[last], count = one.box.shape[last];
  return RowPart<T>{start, start + count, one.values + row * count, one.weights[last], outer};
}

/// Sets sums, or adds to them. Without weights along the row the weight is a constant to the
/// compiler.
template <bool kFirst, class T>
void add(const T* values, const double* weights, double outer, std::int64_t count, Sum<T>* sums,
         Sum<T>* totals) {
  const auto one = [&](std::int64_t x, Sum<T> weight) {
    const Sum<T> value = weight * static_cast<Sum<T>>(values[x]);
    sums[x] = kFirst ? value : sums[x] + value;
    totals[x] = kFirst ? weight : totals[x] + weight;
  };
  const auto constant = static_cast<Sum<T>>(outer);
  if (weights == nullptr) {
    for (std::int64_t x = 0; x < count; ++x) one(x, constant);
  } else {
    for (std::int64_t x = 0; x < count; ++x) one(x, constant * static_cast<Sum<T>>(weights[x]));
  }
}

/// Blends one row after another; keeps its memory between rows.
template <class T>
class RowBlender {
 public:
  RowBlender(std::span<const WeightedBox<T>> boxes, std::int64_t length, T fill)
      : boxes_(boxes), length_(length), fill_(fill) {}

  void blend(const Dims& at, T* out) {
    parts_.clear();
    cuts_.assign({0, length_});
    for (const WeightedBox<T>& box : boxes_)
      if (const auto part = row_of(box, at); part && part->start < part->end) {
        parts_.push_back(*part);
        cuts_.insert(cuts_.end(), {part->start, part->end});
      }
    std::sort(cuts_.begin(), cuts_.end());
    for (std::size_t i = 0; i + 1 < cuts_.size(); ++i)
      if (cuts_[i] < cuts_[i + 1]) blend(cuts_[i], cuts_[i + 1], out);
  }

 private:
  /// Between two cuts: each part has all of it or nothing.
  void blend(std::int64_t begin, std::int64_t end, T* out) {
    const std::int64_t count = end - begin;
    const RowPart<T>* first = nullptr;
    bool is_mean = false;
    for (const RowPart<T>& part : parts_) {
      if (!part.covers(begin)) continue;
      if (first == nullptr) {
        first = &part;
        continue;
      }
      if (!is_mean) {
        sums_.resize(static_cast<std::size_t>(length_));
        totals_.resize(sums_.size());
        add<true>(*first, begin, count);
      }
      is_mean = true;
      add<false>(part, begin, count);
    }
    if (first == nullptr) {
      std::fill_n(out + begin, count, fill_);
    } else if (!is_mean) {
      std::copy_n(first->values + (begin - first->start), count, out + begin);
    } else {
      for (std::int64_t x = 0; x < count; ++x) {
        const auto i = static_cast<std::size_t>(x);
        out[begin + x] = static_cast<T>(sums_[i] / totals_[i]);
      }
    }
  }

  template <bool kFirst>
  void add(const RowPart<T>& part, std::int64_t begin, std::int64_t count) {
    const std::int64_t from = begin - part.start;
    batchfs::add<kFirst>(part.values + from,
                         part.weights == nullptr ? nullptr : part.weights + from, part.outer, count,
                         sums_.data(), totals_.data());
  }

  const std::span<const WeightedBox<T>> boxes_;
  const std::int64_t length_;
  const T fill_;
  std::vector<RowPart<T>> parts_;
  std::vector<std::int64_t> cuts_;
  std::vector<Sum<T>> sums_, totals_;
};

}  // namespace

template <class T>
void blend(std::span<const WeightedBox<T>> boxes, const Dims& shape, T fill, T* out) {
  // A row at a time: the sums stay in the first cache.
  const std::int64_t length = shape.back();
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
  RowBlender<T> blender(boxes, length, fill);
  Dims at(shape.size());
  for (std::int64_t row = 0; row < rows; ++row, out += length) {
    blender.blend(at, out);
    for (std::size_t d = shape.size() - 1; d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

template void blend(std::span<const WeightedBox<float>>, const Dims&, float, float*);
template void blend(std::span<const WeightedBox<double>>, const Dims&, double, double*);

}  // namespace batchfs
