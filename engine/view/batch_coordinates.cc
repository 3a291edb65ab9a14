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
BatchCoordinate along_samples(const View& view, const std::string& name, std::size_t w,
                              std::int64_t epoch, std::int64_t batch) {
  const std::string& dim = view.window_dims()[w].name;
  const View::Coordinate* index = index_of(view, dim);
  const DataType type = index != nullptr ? index->values->type : make_type(Kind::signed_int, 8);
  const auto read = [&view, &dim, index, w, epoch, batch, itemsize = type.itemsize](
                        RowRange range, std::byte* out) {
    for_each_range(range, [&](RowRange part) {
      for (const Dims& starts : view.window_starts(epoch, batch, part)) {
        const std::int64_t position = view.selected(dim)[starts[w]];
        const auto* label = index != nullptr ? index->values->data.data() +
                                                   static_cast<std::size_t>(starts[w]) * itemsize
                                             : reinterpret_cast<const std::byte*>(&position);
        std::memcpy(out, label, itemsize);
        out += itemsize;
      }
    });
  };
  return {name,
          {"sample"},
          type,
          view.row_count(batch),
          index != nullptr ? index->note : "",
          index != nullptr ? index->attributes : Json::object(),
          read};
}

bool has_dim(const TensorSpec& tensor, const std::string& dim) {
  return std::find(tensor.dims.begin() + 1, tensor.dims.end(), dim) != tensor.dims.end();
}

}  // namespace

bool has_tensor_dim(const std::vector<TensorSpec>& tensors, const std::string& dim) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const TensorSpec& tensor) { return has_dim(tensor, dim); });
}

std::optional<BatchCoordinate> tensor_coordinate(const View& view, const TensorSpec& tensor,
                                                 const std::string& dim) {
  for (const View::Coordinate& coordinate : view.coordinates()) {
    if (tensor_dim(coordinate.name) != dim ||
        window_number(view.window_dims(), coordinate.name) >= 0)
      continue;
    const std::int64_t size = coarse_along(tensor.coarsen, coordinate.name);
    BatchCoordinate result;
    if (size > 1) {
      std::optional<NdArray> values = coarse_labels(*coordinate.values, size);
      if (!values) return std::nullopt;
      result = whole_coordinate(std::move(*values));
    } else {
      result = coordinate_part(*coordinate.values, 0, coordinate.values->shape[0]);
    }
    result.name = dim;
    result.dims = {dim};
    result.note = coordinate.note;
    result.attributes = coordinate.attributes;
    return result;
  }
  return std::nullopt;
}

std::vector<BatchCoordinate> coordinates_of_batch(const View& view, std::int64_t epoch,
                                                  std::int64_t batch) {
  std::vector<BatchCoordinate> result;
  const std::vector<TensorSpec>& tensors = view.tensors();
  const auto taken = [&](const std::string& name) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const TensorSpec& t) { return t.name == name; }) ||
           std::any_of(result.begin(), result.end(),
                       [&](const BatchCoordinate& c) { return c.name == name; });
  };
  const std::vector<WindowDim>& windows = view.window_dims();
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const std::string& dim = windows[w].name;
    const bool is_free = windows[w].size == 1 && !has_tensor_dim(tensors, tensor_dim(dim));
    const std::string name = is_free ? dim : dim + "_start";
    if (!taken(name) && !has_tensor_dim(tensors, name))
      result.push_back(along_samples(view, name, w, epoch, batch));
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
