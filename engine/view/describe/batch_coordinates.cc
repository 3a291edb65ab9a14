#include "engine/view/describe/batch_coordinates.h"

#include <algorithm>
#include <cstring>

#include "engine/dataset/attributes.h"
#include "engine/dataset/read_variable.h"
#include "engine/view/coarsen/coarse_labels.h"
#include "engine/view/rows/patch_rows.h"
#include "engine/view/tensors/tensor_layout.h"
#include "engine/view/tensors/tensor_set.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

/// Along the samples: the label of each window's first position, or the position itself.
BatchCoordinate along_samples(const View& view, const std::string& name, std::size_t w,
                              std::int64_t epoch, std::int64_t batch) {
  const std::string& dim = view.axes().windows[w].name;
  const ViewCoordinate* index = view.coordinate(dim);
  const DataType type = index != nullptr ? index->values->type : make_type(Kind::signed_int, 8);
  const auto read = [&view, &dim, index, w, epoch, batch, itemsize = type.itemsize](
                        RowRange range, std::byte* out) {
    for_each_range(range, [&](RowRange part) {
      for (const Dims& starts : view.window_starts(epoch, batch, part)) {
        const std::int64_t position = view.axes().along(dim)[starts[w]];
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

/// Along the sliced dimensions those of a batch that is one patch; concatenated patches have none.
std::vector<BatchCoordinate> patch_coordinates(const View& view, std::int64_t batch) {
  const PatchRows& rows = *view.patches();
  std::vector<BatchCoordinate> result;
  Dims starts(view.axes().windows.size());
  rows.starts_of(batch, starts.begin());
  for (const ViewCoordinate& whole : view.coordinates()) {
    const auto has = [&](const TensorSpec& t) {
      return std::find(t.dims.begin(), t.dims.end(), whole.name) != t.dims.end();
    };
    const auto is_called = [&](const TensorSpec& t) { return t.name == whole.name; };
    const int w = rows.sliced_number(whole.name);
    const bool lost =
        (w >= 0 && rows.spec().concat_input_dims) || (whole.name == "sample" && rows.stacks());
    const std::vector<TensorSpec>& tensors = view.tensors();
    if (lost || std::none_of(tensors.begin(), tensors.end(), has) ||
        std::any_of(tensors.begin(), tensors.end(), is_called))
      continue;
    const std::int64_t first = w < 0 ? 0 : starts[static_cast<std::size_t>(w)];
    BatchCoordinate coordinate =
        coordinate_part(*whole.values, first, rows.extent(view.axes(), whole.name));
    coordinate.name = whole.name;
    coordinate.dims = {whole.name};
    coordinate.note = whole.note;
    coordinate.attributes = whole.attributes;
    result.push_back(std::move(coordinate));
  }
  return result;
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
  for (const ViewCoordinate& coordinate : view.coordinates()) {
    if (tensor_dim(coordinate.name) != dim ||
        window_number(view.axes().windows, coordinate.name) >= 0)
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

std::vector<ViewCoordinate> collect_coordinates(const Dataset& dataset, const ViewAxes& axes,
                                                const TensorSet& set) {
  std::vector<ViewCoordinate> coordinates;
  std::uint64_t most = max_coordinates(dataset);
  for (const auto& [dim, size] : dataset.dims()) {
    // Samples have labels along all windows, also where no tensor has the dimension.
    const bool used =
        window_number(axes.windows, dim) >= 0 ||
        std::any_of(set.variables.begin(), set.variables.end(),
                    [&, &name = dim](const Variable* v) {
                      return std::find(v->dims.begin(), v->dims.end(), name) != v->dims.end();
                    }) ||
        std::any_of(set.specs.begin(), set.specs.end(), [&, &name = dim](const TensorSpec& tensor) {
          return !set.made.empty() && std::find(tensor.dims.begin(), tensor.dims.end(),
                                                tensor_dim(name)) != tensor.dims.end();
        });
    const Variable* index = dataset.index_of(dim);
    if (!used || index == nullptr) continue;
    if (value_bytes(*index) > most) continue;
    std::shared_ptr<const NdArray> values;
    try {
      values = dataset.labels_at(dim, axes.along(dim));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::no_memory) throw;
      continue;  // as those of more than max_coordinates()
    }
    if (values->data.size() > most) continue;
    most -= values->data.size();
    const CfDecoding& cf = dataset.index(dim).cf;
    coordinates.push_back({dim, {dim}, std::move(values), cf.note, decoded_attributes(*index, cf)});
  }
  return coordinates;
}

std::vector<BatchCoordinate> batch_coordinates(const View& view, std::int64_t epoch,
                                               std::int64_t batch) {
  if (view.patches() != nullptr) return patch_coordinates(view, batch);
  std::vector<BatchCoordinate> result;
  const std::vector<TensorSpec>& tensors = view.tensors();
  const auto taken = [&](const std::string& name) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const TensorSpec& t) { return t.name == name; }) ||
           std::any_of(result.begin(), result.end(),
                       [&](const BatchCoordinate& c) { return c.name == name; });
  };
  const std::vector<WindowDim>& windows = view.axes().windows;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const std::string& dim = windows[w].name;
    const bool is_free = windows[w].size == 1 && !has_tensor_dim(tensors, tensor_dim(dim));
    const std::string name = is_free ? dim : dim + "_start";
    if (!taken(name) && !has_tensor_dim(tensors, name))
      result.push_back(along_samples(view, name, w, epoch, batch));
  }
  for (const ViewCoordinate& coordinate : view.coordinates()) {
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
