#include "engine/view/batch_coordinates.h"

#include <algorithm>
#include <cstring>

#include "engine/view/coarsen/coarse_labels.h"
#include "engine/view/tensor_layout.h"

namespace batchfs {

namespace {

const View::Coordinate* index_of(const View& view, const std::string& dim) {
  for (const View::Coordinate& coordinate : view.coordinates())
    if (coordinate.name == dim) return &coordinate;
  return nullptr;
}

/// Along the samples: the label of each window's first position, or the position itself.
View::Coordinate along_samples(const View& view, const std::string& name, const std::string& dim,
                               std::size_t w, const std::vector<Dims>& starts) {
  const View::Coordinate* index = index_of(view, dim);
  const DataType type = index != nullptr ? index->values.type : make_type(Kind::signed_int, 8);
  const std::size_t itemsize = type.itemsize;
  NdArray values{
      type, {static_cast<std::int64_t>(starts.size())}, Buffer(starts.size() * itemsize)};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t start = starts[i][w];
    const std::int64_t position = view.selected(dim)[start];
    const auto* label = index != nullptr
                            ? index->values.data.data() + static_cast<std::size_t>(start) * itemsize
                            : reinterpret_cast<const std::byte*>(&position);
    std::memcpy(values.data.data() + i * itemsize, label, itemsize);
  }
  return {name,
          {"sample"},
          std::move(values),
          index != nullptr ? index->note : "",
          index != nullptr ? index->attributes : Json::object()};
}

bool has_dim(const TensorSpec& tensor, const std::string& dim) {
  return std::find(tensor.dims.begin() + 1, tensor.dims.end(), dim) != tensor.dims.end();
}

NdArray copy_of(const NdArray& values) {
  Buffer copy(values.data.size());
  if (copy.size() > 0) std::memcpy(copy.data(), values.data.data(), copy.size());
  return {values.type, values.shape, std::move(copy)};
}

}  // namespace

bool has_tensor_dim(const std::vector<TensorSpec>& tensors, const std::string& dim) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const TensorSpec& tensor) { return has_dim(tensor, dim); });
}

std::optional<View::Coordinate> tensor_coordinate(const View& view, const TensorSpec& tensor,
                                                  const std::string& dim) {
  for (const View::Coordinate& coordinate : view.coordinates()) {
    if (tensor_dim(coordinate.name) != dim ||
        window_number(view.window_dims(), coordinate.name) >= 0)
      continue;
    const std::int64_t size = coarse_along(tensor.coarsen, coordinate.name);
    std::optional<NdArray> values =
        size > 1 ? coarse_labels(coordinate.values, size) : copy_of(coordinate.values);
    if (!values) return std::nullopt;
    return View::Coordinate{dim, {dim}, std::move(*values), coordinate.note, coordinate.attributes};
  }
  return std::nullopt;
}

std::vector<View::Coordinate> coordinates_of_batch(const View& view, std::int64_t epoch,
                                                   std::int64_t batch) {
  std::vector<View::Coordinate> result;
  const std::vector<TensorSpec>& tensors = view.tensors();
  const auto taken = [&](const std::string& name) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const TensorSpec& t) { return t.name == name; }) ||
           std::any_of(result.begin(), result.end(),
                       [&](const View::Coordinate& c) { return c.name == name; });
  };
  const std::vector<WindowDim>& windows = view.window_dims();
  const std::vector<Dims> starts = view.window_starts(epoch, batch);
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const std::string& dim = windows[w].name;
    const bool is_free = windows[w].size == 1 && !has_tensor_dim(tensors, tensor_dim(dim));
    const std::string name = is_free ? dim : dim + "_start";
    if (!taken(name) && !has_tensor_dim(tensors, name))
      result.push_back(along_samples(view, name, dim, w, starts));
  }
  for (const View::Coordinate& coordinate : view.coordinates()) {
    const bool is_window = std::any_of(windows.begin(), windows.end(), [&](const WindowDim& w) {
      return w.name == coordinate.name;
    });
    const std::string name = tensor_dim(coordinate.name);
    if (is_window || taken(name) || !has_tensor_dim(tensors, name)) continue;
    // The first tensor's, where one has it coarser than others.
    const auto tensor = std::find_if(tensors.begin(), tensors.end(),
                                     [&](const TensorSpec& each) { return has_dim(each, name); });
    if (auto own = tensor_coordinate(view, *tensor, name)) result.push_back(std::move(*own));
  }
  return result;
}

}  // namespace batchfs
