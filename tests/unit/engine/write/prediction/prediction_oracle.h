#pragma once
// Computes the required contents of an output from the definition: every element looks through all
// samples.

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "engine/write/prediction/prediction_writer.h"

namespace batchfs {

inline PredictedAxis whole_axis(const std::string& name, std::int64_t length) {
  return {.name = name, .length = length};
}

inline PredictedAxis window_axis(const std::string& name, std::int64_t length, int window,
                                 std::int64_t size, bool wraps = false) {
  return {.name = name, .length = length, .window = window, .blocks = {{0, size}}, .wraps = wraps};
}

/// All combinations of starts, numbered in C order from `first`, `step` apart.
inline PredictionSamples grid_samples(const std::vector<std::vector<std::int64_t>>& starts,
                                      std::int64_t first = 0, std::int64_t step = 1) {
  PredictionSamples samples;
  std::int64_t count = 1;
  for (std::size_t d = 0; d < starts.size(); ++d) {
    samples.dims.push_back("d" + std::to_string(d));
    count *= static_cast<std::int64_t>(starts[d].size());
  }
  for (std::int64_t i = 0; i < count; ++i) {
    samples.numbers.push_back(first + i * step);
    std::int64_t rest = i, below = count;
    for (const auto& along : starts) {
      below /= static_cast<std::int64_t>(along.size());
      samples.starts.push_back(along[static_cast<std::size_t>(rest / below)]);
      rest %= below;
    }
  }
  samples.is_grid = true;
  samples.digest = "grid";
  return samples;
}

/// A float that depends on the sample and the place of the value in its tensor.
inline float sample_value(std::int64_t sample, std::int64_t flat) {
  const auto mixed = static_cast<std::uint32_t>(sample * 7919 + flat * 104729) * 2654435761u;
  return static_cast<float>(mixed >> 8) / 65536.f - 100.f;
}

/// An output array from the values of its samples.
class PredictionOracle {
 public:
  PredictionOracle(const PredictedArray& array, const PredictionSamples& samples, Overlap overlap)
      : array_(array), samples_(samples), overlap_(overlap) {
    for (const PredictedAxis& axis : array.axes) {
      shape_.push_back(axis.length);
      extents_.push_back(axis.extent());
      std::set<std::int64_t> starts;
      for (std::size_t row = 0; row < samples.size() && axis.window >= 0; ++row)
        starts.insert(samples.start(row, axis.window));
      starts_.emplace_back(starts.begin(), starts.end());
    }
    for (std::size_t row = 0; row < samples.size(); ++row) add_sample(row);
  }

  /// NaN where no sample has a value.
  std::vector<float> values() const {
    std::vector<float> result;
    for (const std::vector<Contribution>& of_element : elements_)
      result.push_back(resolved(of_element));
    return result;
  }

 private:
  struct Contribution {
    std::int64_t sample;
    float value;
    double weight;                  // for Overlap::cosine
    std::vector<double> distances;  // from the middle of the window, in windows
  };

  /// The position of a sample's i-th value along the axis; -1: none.
  std::int64_t place(std::size_t a, std::size_t row, std::int64_t i) const {
    const PredictedAxis& axis = array_.axes[a];
    if (axis.window < 0) return i;
    const std::int64_t start = samples_.start(row, axis.window);
    if (axis.by_start) {
      std::int64_t before = 0;
      for (const std::int64_t other : starts_[a]) before += other < start ? 1 : 0;
      return before;
    }
    std::int64_t at = i;
    for (const auto& [offset, size] : axis.blocks) {
      if (at < size) {
        at += start + offset;
        if (axis.wraps) return ((at % axis.length) + axis.length) % axis.length;
        return at >= 0 && at < axis.length ? at : -1;
      }
      at -= size;
    }
    return -1;
  }

  /// Decreases as sin² over the positions shared with the previous and the next window.
  double cosine_weight(std::size_t a, std::size_t row, std::int64_t i) const {
    const PredictedAxis& axis = array_.axes[a];
    if (axis.window < 0 || axis.by_start || axis.blocks.size() > 1) return 1;
    const std::int64_t start = samples_.start(row, axis.window), size = axis.blocks[0].second;
    std::int64_t before = INT64_MIN, behind = INT64_MAX;
    for (const std::int64_t other : starts_[a])
      for (std::int64_t turn = -1; turn <= 1; ++turn) {
        if (turn != 0 && !axis.wraps) continue;
        const std::int64_t at = other + turn * axis.length;
        if (at < start) before = std::max(before, at);
        if (at > start) behind = std::min(behind, at);
      }
    double weight = 1;
    const auto ramp = [](std::int64_t x, std::int64_t count) {
      return std::pow(
          std::sin(M_PI / 2 * (static_cast<double>(x) + 0.5) / static_cast<double>(count)), 2);
    };
    if (before != INT64_MIN && before + size > start + i) weight *= ramp(i, before + size - start);
    if (behind != INT64_MAX && behind <= start + i)
      weight *= ramp(size - 1 - i, start + size - behind);
    return weight;
  }

  void add_sample(std::size_t row) {
    elements_.resize(static_cast<std::size_t>(element_count(shape_)));
    const std::int64_t sample = samples_.numbers[row];
    const std::int64_t all = element_count(extents_);
    for (std::int64_t flat = 0; flat < all; ++flat) {
      Contribution one{sample, 0, 1, {}};
      std::int64_t rest = flat, element = 0, below = all;
      Dims at;
      bool is_inside = true;
      for (std::size_t a = 0; a < array_.axes.size(); ++a) {
        below /= extents_[a];
        at.push_back(rest / below);
        rest %= below;
        const std::int64_t place_of_it = place(a, row, at[a]);
        is_inside = is_inside && place_of_it >= 0;
        element = element * shape_[a] + place_of_it;
        one.weight *= cosine_weight(a, row, at[a]);
        const auto size = static_cast<double>(extents_[a]);
        const bool moves = array_.axes[a].window >= 0 && !array_.axes[a].by_start;
        one.distances.push_back(moves ? std::abs(static_cast<double>(at[a]) - (size - 1) / 2) / size
                                      : 0);
      }
      if (!is_inside) continue;
      one.value = sample_value(sample, tensor_place(at));
      elements_[static_cast<std::size_t>(element)].push_back(one);
    }
  }

  /// Position of the value in the sample's tensor.
  std::int64_t tensor_place(const Dims& at) const {
    std::size_t joined = 0;
    std::int64_t channel = 0;
    Dims own;
    const std::size_t dims =
        array_.tensor_shape.size() + (array_.stack ? array_.stack->lengths.size() - 1 : 0);
    for (std::size_t d = 0; d < dims; ++d) {
      std::int64_t index = 0;
      for (std::size_t a = 0; a < at.size(); ++a)
        if (array_.order[a] == static_cast<int>(d)) index = at[a];
      if (array_.stack && joined < array_.stack->lengths.size())
        channel = channel * array_.stack->lengths[joined++] + index;
      else
        own.push_back(index);
    }
    std::int64_t flat = 0;
    for (std::size_t d = 0, next = 0; d < array_.tensor_shape.size(); ++d) {
      const bool is_stack =
          array_.stack && d + 1 == static_cast<std::size_t>(array_.stack->dimension);
      const std::int64_t index = is_stack ? array_.stack->first + channel : own[next++];
      flat = flat * array_.tensor_shape[d] + index;
    }
    return flat;
  }

  float resolved(const std::vector<Contribution>& all) const {
    if (all.empty()) return std::numeric_limits<float>::quiet_NaN();
    if (overlap_ == Overlap::mean || overlap_ == Overlap::cosine) {
      double sum = 0, weights = 0;
      for (const Contribution& one : all) {
        const double weight = overlap_ == Overlap::cosine ? one.weight : 1;
        sum += weight * static_cast<double>(one.value);
        weights += weight;
      }
      return static_cast<float>(sum / weights);
    }
    if (overlap_ != Overlap::trim) return all.back().value;
    const Contribution* best = &all.front();
    for (const Contribution& one : all)
      if (is_nearer(one, *best)) best = &one;
    return best->value;
  }

  bool is_nearer(const Contribution& a, const Contribution& b) const {
    if (samples_.is_grid) {
      // Axis by axis: windows of a grid are products.
      for (std::size_t d = 0; d < a.distances.size(); ++d)
        if (a.distances[d] != b.distances[d]) return a.distances[d] < b.distances[d];
      return false;
    }
    double of_a = 0, of_b = 0;
    for (std::size_t d = 0; d < a.distances.size(); ++d) {
      of_a += a.distances[d] * a.distances[d];
      of_b += b.distances[d] * b.distances[d];
    }
    return of_a < of_b;
  }

  const PredictedArray& array_;
  const PredictionSamples& samples_;
  const Overlap overlap_;
  Dims shape_, extents_;
  std::vector<std::vector<std::int64_t>> starts_;
  std::vector<std::vector<Contribution>> elements_;
};

/// The values of a tensor of these samples, in C order.
inline std::vector<float> tensor_values(const PredictedArray& array,
                                        const std::vector<std::int64_t>& samples) {
  std::vector<float> values;
  for (const std::int64_t sample : samples)
    for (std::int64_t flat = 0; flat < element_count(array.tensor_shape); ++flat)
      values.push_back(sample_value(sample, flat));
  return values;
}

inline PredictedValues as_values(const std::vector<float>& values, const PredictedArray& array,
                                 std::size_t samples) {
  Dims shape{static_cast<std::int64_t>(samples)};
  for (const std::int64_t length : array.tensor_shape) shape.push_back(length);
  return {reinterpret_cast<const std::byte*>(values.data()), float32(), shape, c_strides(shape, 4)};
}

}  // namespace batchfs
