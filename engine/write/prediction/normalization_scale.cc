#include "engine/write/prediction/normalization_scale.h"
#include "engine/view/tensors/tensor_set.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace batchfs {

namespace {

/// A tensor's normalization of a variable, and the positions of the selection in the variable's
/// array.
struct Normalized {
  std::shared_ptr<const Normalization> normalization;  // null: it is not normalized
  const Variable* variable = nullptr;
  std::vector<Positions> positions;  // of each dimension
};

Normalized find(const View& view, std::uint32_t tensor, const std::string& name) {
  for (std::uint32_t v = 0; v < view.variables().size(); ++v) {
    const Variable& variable = *view.variables()[v];
    const auto converter = view.tensor_set().converters.find({tensor, v});
    if (variable.name != name || converter == view.tensor_set().converters.end()) continue;
    Normalized found{converter->second->finish().normalization, &variable, {}};
    for (std::size_t d = 0; d < variable.dims.size(); ++d)
      found.positions.push_back(view.tensor_set().stored[v][d]);
    return found;
  }
  for (std::uint32_t c = 0; c < view.tensor_set().made.size(); ++c) {
    const Variable& variable = view.tensor_set().made[c].variable();
    if (variable.name != name) continue;
    Normalized found{
        view.tensor_set().made.converter(tensor, c)->finish().normalization, &variable, {}};
    for (const std::string& dim : variable.dims) found.positions.push_back(view.axes().along(dim));
    return found;
  }
  return {};
}

/// The contribution of a dimension to the place of a sample's numbers.
struct Term {
  std::size_t axis = 0;  // of the output array
  int window = -1;       // that `steps` are counted from the start of; -1: from 0
  bool wraps = false;
  std::vector<std::int64_t> steps;   // for each of the sample's positions along the axis
  std::vector<std::int64_t> places;  // of each position of the selection; kNone: it has no numbers
};

class NormalizationScale : public PredictedScale {
 public:
  NormalizationScale(Dims shape, std::shared_ptr<const Normalization> normalization,
                     std::int64_t base, std::vector<Term> terms,
                     std::shared_ptr<const PredictionSamples> samples)
      : PredictedScale(shape),
        normalization_(std::move(normalization)),
        base_(base),
        terms_(std::move(terms)),
        samples_(std::move(samples)) {}

  void numbers(std::size_t row, double* multiply, double* add) const override {
    const auto count = static_cast<std::size_t>(element_count(shape()));
    std::vector<std::int64_t> places(count, base_);
    for (const Term& term : terms_) {
      std::size_t inner = 1;
      for (std::size_t d = term.axis + 1; d < shape().size(); ++d)
        inner *= static_cast<std::size_t>(shape()[d]);
      const std::int64_t start = term.window < 0 ? 0 : samples_->start(row, term.window);
      const std::size_t length = term.steps.size();
      std::vector<std::int64_t> along(length);
      for (std::size_t i = 0; i < length; ++i)
        along[i] = term.places[position(term, start + term.steps[i])];
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t place = along[i / inner % length];
        places[i] = places[i] < 0 || place < 0 ? -1 : places[i] + place;
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(places[i]);
      constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
      multiply[i] = places[i] < 0 ? kNan : normalization_->divide[at];
      add[i] = places[i] < 0 ? kNan : normalization_->subtract[at];
    }
  }

 private:
  /// Positions outside of the selection are padding, whose values go nowhere.
  static std::size_t position(const Term& term, std::int64_t position) {
    const auto size = static_cast<std::int64_t>(term.places.size());
    if (term.wraps) return static_cast<std::size_t>((position % size + size) % size);
    return static_cast<std::size_t>(std::clamp<std::int64_t>(position, 0, size - 1));
  }

  const std::shared_ptr<const Normalization> normalization_;
  const std::int64_t base_;
  const std::vector<Term> terms_;
  const std::shared_ptr<const PredictionSamples> samples_;
};

}  // namespace

bool is_normalized(const View& view, std::uint32_t tensor, const std::string& variable) {
  return find(view, tensor, variable).normalization != nullptr;
}

std::shared_ptr<const PredictedScale> scale_of(const View& view, std::uint32_t tensor,
                                               const std::string& variable,
                                               const std::vector<DescribedAxis>& axes,
                                               std::shared_ptr<const PredictionSamples> samples) {
  const Normalized found = find(view, tensor, variable);
  if (found.normalization == nullptr) return nullptr;
  if (found.normalization->log_scale)
    throw Error(ErrorCode::not_supported,
                "log1p cuts off what is below 0: it cannot be undone here");
  Dims shape(axes.size(), 1);
  std::int64_t base = 0;
  std::vector<Term> terms;
  const Dims& strides = found.normalization->strides;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    if (strides[d] == 0) continue;
    const std::string& dim = found.variable->dims[d];
    const Positions& positions = found.positions[d];
    if (found.variable->part >= 0 && d == found.variable->concat_dim)
      throw Error(ErrorCode::not_supported,
                  fmt::format("'{}' is normalized along '{}', along which stores lie one behind "
                              "the other: it cannot be undone here",
                              variable, dim));
    if (positions.drops_dim() || positions.size() == 1) {
      base += strides[d] * positions[0];
      continue;
    }
    const auto axis = std::find_if(axes.begin(), axes.end(), [&](const DescribedAxis& each) {
      return each.dim == dim && each.order >= 0;
    });
    if (axis == axes.end())
      throw Error(
          ErrorCode::not_supported,
          fmt::format("'{}' is normalized along '{}', which the predictions do not have: it "
                      "cannot be undone here",
                      variable, dim));
    Term term{.axis = static_cast<std::size_t>(axis - axes.begin()),
              .window = axis->window,
              .wraps = axis->window >= 0 &&
                       view.axes().windows[static_cast<std::size_t>(axis->window)].wrap,
              .steps = axis->steps};
    for (std::int64_t i = 0; i < positions.size(); ++i)
      term.places.push_back(positions[i] == Positions::kNone ? Positions::kNone
                                                             : positions[i] * strides[d]);
    shape[term.axis] = static_cast<std::int64_t>(term.steps.size());
    terms.push_back(std::move(term));
  }
  return std::make_shared<const NormalizationScale>(shape, found.normalization, base,
                                                    std::move(terms), std::move(samples));
}

}  // namespace batchfs
