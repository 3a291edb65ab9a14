#include "engine/view/mixed_tensors.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/view/axes.h"
#include "engine/view/describe/batch_coordinates.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

/// Positions of a mixture along one dimension, at most.
constexpr std::int64_t kMaxListed = 1 << 20;

std::string shape_of_sample(const TensorSpec& tensor) {
  std::vector<std::string> sizes;
  for (std::size_t d = 1; d < tensor.shape.size(); ++d)
    sizes.push_back(std::to_string(tensor.shape[d]));
  return "(" + join(sizes, ", ") + ")";
}

/// How a tensor of one component differs from that of another; empty: it does not.
std::string difference(const TensorSpec& one, const TensorSpec& other, const std::string& first,
                       const std::string& second) {
  const auto differ = [&](std::string_view what, const auto& a, const auto& b) {
    return fmt::format("{} is {} in '{}' and {} in '{}'", what, a, first, b, second);
  };
  if (one.name != other.name)
    return differ("a tensor", "'" + one.name + "'", "'" + other.name + "'");
  if (!(one.type == other.type))
    return differ("the type of '" + one.name + "'", one.type.name(), other.type.name());
  if (one.dims != other.dims)
    return differ("what '" + one.name + "' has as dimensions", join(one.dims, ", "),
                  join(other.dims, ", "));
  if (!std::equal(one.shape.begin() + 1, one.shape.end(), other.shape.begin() + 1,
                  other.shape.end()))
    return differ("the shape of a sample of '" + one.name + "'", shape_of_sample(one),
                  shape_of_sample(other));
  if (!(one.coarsen == other.coarsen))
    return fmt::format("'{}' is coarsened in '{}' and '{}' in different ways", one.name, first,
                       second);
  if (one.stack_axis != other.stack_axis || (one.values == nullptr) != (other.values == nullptr))
    return differ("the origin of '" + one.name + "'", one.values ? "a list" : "the store",
                  other.values ? "a list" : "the store");
  return {};
}

/// Throws unless all components that pad a tensor pad it with one value.
void check_pads(const std::vector<std::shared_ptr<const View>>& views,
                const std::vector<std::string>& names) {
  for (std::size_t t = 0; t < views[0]->tensors().size(); ++t) {
    std::size_t first = views.size();
    for (std::size_t i = 0; i < views.size(); ++i) {
      const TensorSpec& tensor = views[i]->tensors()[t];
      if (!tensor.padded) continue;
      if (first == views.size()) first = i;
      if (tensor.pad != views[first]->tensors()[t].pad)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("mix.{}: padding of '{}' is not the same in '{}' and '{}': give "
                                "both one \"pad_value\"",
                                names[i], tensor.name, names[first], names[i]));
    }
  }
}

const ViewCoordinate* coordinate_of(const View& view, const std::string& dim) {
  for (const ViewCoordinate& coordinate : view.coordinates())
    if (coordinate.name == dim) return &coordinate;
  return nullptr;
}

bool have_one_type(const ViewCoordinate& a, const ViewCoordinate& b) {
  return a.values->type == b.values->type && a.note == b.note;
}

bool are_equal(const ViewCoordinate& a, const ViewCoordinate& b) {
  return have_one_type(a, b) && a.values->data.size() == b.values->data.size() &&
         (a.values->data.size() == 0 ||
          std::memcmp(a.values->data.data(), b.values->data.data(), a.values->data.size()) == 0);
}

bool are_equal(const Positions& a, const Positions& b) {
  if (a.size() != b.size()) return false;
  if (a.is_range() && b.is_range()) return a.size() == 0 || a[0] == b[0];
  for (std::int64_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}

/// The labels of one after the other.
ViewCoordinate one_after_the_other(const std::vector<const ViewCoordinate*>& parts) {
  std::size_t bytes = 0;
  std::int64_t size = 0;
  for (const ViewCoordinate* part : parts) {
    bytes += part->values->data.size();
    size += part->values->shape[0];
  }
  Buffer data(bytes);
  bytes = 0;
  for (const ViewCoordinate* part : parts) {
    if (part->values->data.size() > 0)
      std::memcpy(data.data() + bytes, part->values->data.data(), part->values->data.size());
    bytes += part->values->data.size();
  }
  const DataType& type = parts[0]->values->type;
  return {parts[0]->name, parts[0]->dims,
          std::make_shared<const NdArray>(NdArray{type, {size}, std::move(data)}), parts[0]->note,
          parts[0]->attributes};
}

/// The positions of one after the other; those of the mixture where they exceed the limit of a
/// list.
Positions one_after_the_other(const std::vector<std::shared_ptr<const View>>& views,
                              const std::string& dim, std::int64_t size) {
  if (size > kMaxListed) return Positions::range(0, size);
  std::vector<std::int64_t> all;
  for (const auto& view : views) {
    const Positions& own = view->axes().along(dim);
    for (std::int64_t i = 0; i < own.size(); ++i) all.push_back(own[i]);
  }
  return Positions::list(std::move(all));
}

/// One window dimension.
void mix_window(const std::vector<std::shared_ptr<const View>>& views, std::size_t w,
                MixedWindows& result) {
  const std::string& dim = views[0]->axes().windows[w].name;
  std::vector<const ViewCoordinate*> labels;
  std::int64_t size = 0;
  std::vector<std::int64_t> first;
  bool same = true, labelled = true;
  std::uint64_t bytes = 0;
  for (const auto& view : views) {
    labels.push_back(coordinate_of(*view, dim));
    first.push_back(size);
    size += view->axes().along(dim).size();
    same = same && are_equal(view->axes().along(dim), views[0]->axes().along(dim)) &&
           (labels[0] == nullptr) == (labels.back() == nullptr) &&
           (labels[0] == nullptr || are_equal(*labels[0], *labels.back()));
    labelled = labelled && labels.back() != nullptr && labels[0] != nullptr &&
               have_one_type(*labels[0], *labels.back());
    if (labels.back() != nullptr) bytes += labels.back()->values->data.size();
  }
  labelled = labelled && bytes <= max_coordinates(*views[0]->dataset());
  if (same) {
    result.first.emplace_back(views.size());
    result.selected.push_back(views[0]->axes().along(dim));
    if (labels[0] != nullptr) result.coordinates.push_back(*labels[0]);
    return;
  }
  result.first.push_back(std::move(first));
  result.selected.push_back(one_after_the_other(views, dim, size));
  if (labelled)
    result.coordinates.push_back(one_after_the_other(labels));
  else if (std::any_of(labels.begin(), labels.end(),
                       [](const auto* one) { return one != nullptr; }))
    result.warnings.push_back(fmt::format(
        "the views have labels of '{}' that do not go together: samples have positions", dim));
}

}  // namespace

void check_mixed_tensors(const std::vector<std::shared_ptr<const View>>& views,
                         const std::vector<std::string>& names) {
  const auto fail = [&](std::size_t i, const std::string& why) {
    return Error(ErrorCode::invalid_argument, fmt::format("mix.{}: {}", names[i], why));
  };
  const View& one = *views[0];
  for (std::size_t i = 1; i < views.size(); ++i) {
    const View& other = *views[i];
    const std::size_t count = std::min(one.tensors().size(), other.tensors().size());
    for (std::size_t t = 0; t < count; ++t)
      if (const std::string why =
              difference(one.tensors()[t], other.tensors()[t], names[0], names[i]);
          !why.empty())
        throw fail(i, why + "; a mixture has one kind of tensors");
    if (one.tensors().size() != other.tensors().size()) {
      const bool more = one.tensors().size() > count;
      throw fail(i,
                 fmt::format("'{}' has a tensor '{}' and '{}' has none; a mixture has one kind "
                             "of tensors",
                             more ? names[0] : names[i], (more ? one : other).tensors()[count].name,
                             more ? names[i] : names[0]));
    }
    const auto& windows = one.axes().windows;
    const auto& others = other.axes().windows;
    for (std::size_t w = 0; w < std::max(windows.size(), others.size()); ++w)
      if (w >= windows.size() || w >= others.size() || windows[w].name != others[w].name ||
          windows[w].size != others[w].size) {
        const auto text = [w](const std::vector<WindowDim>& dims) {
          return w < dims.size() ? fmt::format("{} of '{}'", dims[w].size, dims[w].name) : "none";
        };
        throw fail(i, fmt::format("a window is {} in '{}' and {} in '{}'; a mixture has windows "
                                  "of one kind, in one order",
                                  text(windows), names[0], text(others), names[i]));
      }
  }
  check_pads(views, names);
}

MixedWindows mix_windows(const std::vector<std::shared_ptr<const View>>& views,
                         const std::vector<std::string>& names) {
  MixedWindows result;
  const auto& windows = views[0]->axes().windows;
  for (std::size_t w = 0; w < windows.size(); ++w) mix_window(views, w, result);
  for (const ViewCoordinate& coordinate : views[0]->coordinates()) {
    if (window_number(windows, coordinate.name) >= 0) continue;
    std::size_t other = 0;
    for (std::size_t i = 1; i < views.size() && other == 0; ++i) {
      const ViewCoordinate* own = coordinate_of(*views[i], coordinate.name);
      if (own == nullptr || !are_equal(coordinate, *own)) other = i;
    }
    if (other == 0)
      result.coordinates.push_back(coordinate);
    else if (has_tensor_dim(views[0]->tensors(), coordinate.name))
      result.warnings.push_back(
          fmt::format("'{}' and '{}' have other labels along '{}': batches "
                      "have none",
                      names[0], names[other], coordinate.name));
  }
  for (std::size_t t = 0; t < views[0]->tensors().size(); ++t)
    for (std::size_t i = 1; i < views.size(); ++i) {
      const std::vector<std::string>& one = views[0]->tensors()[t].channels;
      const std::vector<std::string>& own = views[i]->tensors()[t].channels;
      const auto [a, b] = std::mismatch(one.begin(), one.end(), own.begin(), own.end());
      if (a != one.end() && b != own.end())
        result.warnings.push_back(fmt::format("channel {} of '{}' is '{}' in '{}' and '{}' in '{}'",
                                              a - one.begin(), views[0]->tensors()[t].name, *a,
                                              names[0], *b, names[i]));
    }
  return result;
}

}  // namespace batchfs
