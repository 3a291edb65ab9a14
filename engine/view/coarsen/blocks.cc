#include "engine/view/coarsen/blocks.h"

#include <cmath>
#include <limits>
#include <vector>

namespace batchfs {

namespace {

/// The results of one row, and the number of values in each.
struct Results {
  std::vector<double> results;
  std::vector<std::int64_t> counts;
};

/// Steps to the next index of `shape` in C order; false after the last.
bool step_to_next(Dims& at, const Dims& shape) {
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (++at[d] < shape[d]) return true;
    at[d] = 0;
  }
  return false;
}

/// Adds `values`, `factor` consecutive ones to each result.
template <class Enter>
void take_values(const double* values, std::int64_t factor, Results& row, Enter enter) {
  for (std::size_t i = 0; i < row.results.size(); ++i)
    for (std::int64_t k = 0; k < factor; ++k, ++values)
      if (!std::isnan(*values)) {
        enter(row.results[i], *values);
        ++row.counts[i];
      }
}

void take_block(const double* values, std::int64_t factor, CoarsenMethod how, Results& row) {
  switch (how) {
    case CoarsenMethod::mean:
    case CoarsenMethod::sum:
      return take_values(values, factor, row, [](double& sum, double value) { sum += value; });
    case CoarsenMethod::min:
      return take_values(values, factor, row, [](double& least, double value) {
        if (value < least) least = value;
      });
    case CoarsenMethod::max:
      return take_values(values, factor, row, [](double& most, double value) {
        if (value > most) most = value;
      });
  }
}

double neutral(CoarsenMethod how) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (how == CoarsenMethod::min) return kInf;
  return how == CoarsenMethod::max ? -kInf : 0;
}

double finished(CoarsenMethod how, double result, std::int64_t count, bool is_padding) {
  if (how == CoarsenMethod::sum && !is_padding) return result;
  if (count == 0) return std::numeric_limits<double>::quiet_NaN();
  return how == CoarsenMethod::mean ? result / static_cast<double>(count) : result;
}

/// The blocks of `factor` positions that are padding.
std::vector<bool> padded_blocks(const std::vector<bool>& padded, std::int64_t factor) {
  std::vector<bool> blocks(padded.size() / static_cast<std::size_t>(factor), true);
  for (std::size_t i = 0; i < padded.size(); ++i)
    if (!padded[i]) blocks[i / static_cast<std::size_t>(factor)] = false;
  return blocks;
}

bool is_padded(const PaddedPositions& padded, std::size_t d, std::int64_t position) {
  return !padded[d].empty() && padded[d][static_cast<std::size_t>(position)];
}

}  // namespace

Dims reduce_blocks(double* values, const Dims& shape, const Dims& factors, CoarsenMethod how,
                   PaddedPositions& padded) {
  Dims coarse = shape;
  for (std::size_t d = 0; d < shape.size(); ++d) padded[d] = padded_blocks(padded[d], factors[d]);
  for (std::size_t d = 0; d < shape.size(); ++d) coarse[d] = shape[d] / factors[d];
  if (element_count(coarse) == 0) return coarse;
  const std::size_t rank = shape.size();
  const std::size_t outer = rank > 0 ? rank - 1 : 0;
  const Dims strides = c_strides(shape, 1);
  Dims rows(std::span(coarse.begin(), outer)), blocks(std::span(factors.begin(), outer));
  const std::int64_t length = rank > 0 ? coarse[outer] : 1;
  const std::int64_t factor = rank > 0 ? factors[outer] : 1;
  Results row{std::vector<double>(static_cast<std::size_t>(length)), {}};
  // A row's results are written when all of its values are read, and those of later rows lie after
  // them: no position of the result is after the first value of its block.
  double* out = values;
  Dims at(outer);
  do {
    row.results.assign(row.results.size(), neutral(how));
    row.counts.assign(row.results.size(), 0);
    Dims in(outer);
    do {
      std::int64_t from = 0;
      for (std::size_t d = 0; d < outer; ++d) from += (at[d] * factors[d] + in[d]) * strides[d];
      take_block(values + from, factor, how, row);
    } while (step_to_next(in, blocks));
    bool is_row_padded = false;
    for (std::size_t d = 0; d < outer; ++d)
      is_row_padded = is_row_padded || is_padded(padded, d, at[d]);
    for (std::size_t i = 0; i < row.results.size(); ++i)
      *out++ = finished(
          how, row.results[i], row.counts[i],
          is_row_padded || (rank > 0 && is_padded(padded, outer, static_cast<std::int64_t>(i))));
  } while (step_to_next(at, rows));
  return coarse;
}

}  // namespace batchfs
