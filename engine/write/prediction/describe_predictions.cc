#include "engine/write/prediction/describe_predictions.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/attributes.h"
#include "engine/view/axes.h"
#include "engine/view/describe/resolved.h"
#include "engine/view/describe/schema.h"
#include "engine/write/prediction/described_axes.h"
#include "engine/write/prediction/normalization_scale.h"

namespace batchfs {

namespace {

Error invalid(std::string why) { return Error(ErrorCode::invalid_argument, std::move(why)); }
Error unsupported(std::string why) { return Error(ErrorCode::not_supported, std::move(why)); }

void rename_key(Json& object, const char* from, const char* to) {
  Json value = std::move(object[from]);
  object.erase(from);
  object[to] = std::move(value);
}

class Describer {
 public:
  Describer(const View& view, const DescriptionOptions& options, const PredictionSamples& samples)
      : view_(view),
        options_(options),
        samples_(std::make_shared<const PredictionSamples>(samples)),
        axes_(view, *samples_),
        schema_(view_schema(view)) {}

  std::vector<PredictedArray> arrays() {
    for (const std::uint32_t tensor : chosen_tensors()) add_tensor(tensor);
    if (arrays_.empty())
      throw unsupported(
          "the view has no tensor of variables, of which predictions could be written");
    if (options_.name) {
      if (arrays_.size() != 1)
        throw invalid(fmt::format(
            "the tensor has {} variables: pass name= with a name for each, {{'{}': ...}}",
            arrays_.size(), arrays_.front().name));
      arrays_.front().name = *options_.name;
    }
    check_names();
    return std::move(arrays_);
  }

 private:
  std::vector<std::uint32_t> chosen_tensors() const {
    std::vector<std::string> known;
    std::vector<std::uint32_t> all;
    for (std::uint32_t t = 0; t < view_.tensors().size(); ++t) {
      known.push_back(view_.tensors()[t].name);
      if (view_.tensors()[t].values == nullptr) all.push_back(t);
    }
    if (options_.tensors.empty()) {
      const auto y =
          std::find_if(all.begin(), all.end(), [&](std::uint32_t t) { return known[t] == "y"; });
      return all.size() == 1 || y == all.end() ? all : std::vector{*y};
    }
    std::vector<std::uint32_t> chosen;
    for (const std::string& name : options_.tensors) {
      const auto found = std::find(known.begin(), known.end(), name);
      if (found == known.end())
        throw invalid(
            fmt::format("the view has no tensor '{}'; it has {}", name, join(known, ", ")));
      const auto t = static_cast<std::uint32_t>(found - known.begin());
      if (view_.tensors()[t].values != nullptr)
        throw unsupported(fmt::format(
            "predictions of the tensor '{}' cannot be written: its values come with the samples, "
            "and no variable says where they lie; name another with tensor=",
            name));
      if (std::find(chosen.begin(), chosen.end(), t) == chosen.end()) chosen.push_back(t);
    }
    return chosen;
  }

  void add_tensor(std::uint32_t tensor) {
    const Json& entry = schema_["tensors"][tensor];
    if (entry.contains("coarsen"))
      throw unsupported(
          fmt::format("predictions of the tensor '{}' cannot be written, since the view coarsens "
                      "it: name others with tensor=",
                      entry["name"].get<std::string>()));
    std::int64_t channel = 0;
    for (const Json& variable : entry["variables"]) {
      PredictedArray array = make_array(tensor, entry, variable, channel);
      for (const PredictedArray& other : arrays_)
        if (other.name == array.name)
          throw invalid(
              fmt::format("two tensors have values for '{}'; pass tensor= to name one of "
                          "them, or name=",
                          array.name));
      arrays_.push_back(std::move(array));
      if (options_.reduce) break;
    }
  }

  /// `channel`: the variable's first one in a stack; becomes that of the next variable.
  PredictedArray make_array(std::uint32_t tensor, const Json& entry, const Json& variable,
                            std::int64_t& channel) const {
    const auto stored_name = variable["name"].get<std::string>();
    PredictedArray array;
    array.tensor = entry["name"].get<std::string>();
    const auto name = options_.names.find(stored_name);
    array.name = name != options_.names.end() ? name->second : stored_name;
    array.tensor_dims = entry["dims"].get<std::vector<std::string>>();
    if (!options_.reduce)
      for (std::size_t d = 1; d < entry["shape"].size(); ++d)
        array.tensor_shape.push_back(entry["shape"][d].get<std::int64_t>());
    array.type = type_of(view_.tensors()[tensor].type);
    std::vector<DescribedAxis> axes = make_axes(entry, variable);
    sort_as_stored(axes, variable, entry);
    if (entry.contains("stack") && !options_.reduce) {
      StackSlice stack{.first = channel, .last = channel + 1};
      for (const auto& [dim, length] : joined_of(variable)) {
        stack.lengths.push_back(length);
        stack.last = channel + element_count(stack.lengths);
      }
      while (array.tensor_dims[static_cast<std::size_t>(stack.dimension)] !=
             entry["stack"].get<std::string>())
        ++stack.dimension;
      channel = stack.last;
      array.stack = stack;
    }
    array.attributes = attributes_of(entry, stored_name);
    if (options_.denormalize) array.scale = scale_of(view_, tensor, stored_name, axes, samples_);
    name_units(array.attributes, is_normalized(view_, tensor, stored_name));
    for (DescribedAxis& axis : axes) {
      array.order.push_back(axis.order);
      array.axes.push_back(std::move(axis.axis));
    }
    return array;
  }

  static std::vector<std::pair<std::string, std::int64_t>> joined_of(const Json& variable) {
    std::vector<std::pair<std::string, std::int64_t>> joined;
    if (const auto found = variable.find("joined"); found != variable.end())
      for (const auto& [dim, length] : found->items())
        joined.emplace_back(dim, length.get<std::int64_t>());
    return joined;
  }

  /// In the order of the values: those that a stack joined, then the tensor's own.
  std::vector<DescribedAxis> make_axes(const Json& entry, const Json& variable) const {
    std::vector<DescribedAxis> axes;
    const std::string lead = options_.lead_time ? axes_.time_dim() : "";
    if (options_.reduce) {
      for (const WindowDim& window : view_.axes().windows)
        axes.push_back(axes_.by_start(window.name, window.name));
      return axes;
    }
    const auto tensor = entry["name"].get<std::string>();
    std::vector<std::pair<std::string, std::int64_t>> values = joined_of(variable);
    for (std::size_t d = 1; d < entry["dims"].size(); ++d) {
      const auto dim = entry["dims"][d].get<std::string>();
      if (entry.value("stack", "") == dim) continue;
      values.emplace_back(dim == "stored_sample" ? "sample" : dim,
                          entry["shape"][d].get<std::int64_t>());
    }
    for (std::size_t d = 0; d < values.size(); ++d) {
      const auto& [dim, length] = values[d];
      DescribedAxis axis = axes_.window_of(dim) < 0
                               ? axes_.whole(dim, length, tensor)
                               : axes_.windowed(dim, offsets_of(variable, dim), length, tensor);
      if (options_.lead_time && dim == lead) {
        axes.push_back(axes_.by_start("init_" + dim, dim));
        axis = axes_.lead(axis);
      }
      axis.order = static_cast<int>(d);
      axes.push_back(std::move(axis));
    }
    return axes;
  }

  static Json offsets_of(const Json& variable, const std::string& dim) {
    if (const auto offsets = variable.find("offsets"); offsets != variable.end())
      if (const auto own = offsets->find(dim); own != offsets->end()) return *own;
    return Json::array({0});
  }

  /// Sorts the axes in the order of the variable's stored dimensions; a window's start before its
  /// lead.
  void sort_as_stored(std::vector<DescribedAxis>& axes, const Json& variable,
                      const Json& entry) const {
    std::vector<std::string> stored;
    if (const Variable* found = view_.dataset()->find(variable["name"].get<std::string>());
        found != nullptr && !variable.contains("make")) {
      stored = found->dims;
    } else {
      for (const WindowDim& window : view_.axes().windows) stored.push_back(window.name);
      for (const auto& [dim, length] : joined_of(variable)) stored.push_back(dim);
      for (const Json& dim : entry["dims"]) stored.push_back(dim.get<std::string>());
    }
    const auto rank = [&](const DescribedAxis& axis) {
      return std::find(stored.begin(), stored.end(), axis.dim) - stored.begin();
    };
    std::stable_sort(axes.begin(), axes.end(), [&](const DescribedAxis& a, const DescribedAxis& b) {
      return std::pair(rank(a), a.order) < std::pair(rank(b), b.order);
    });
  }

  DataType type_of(const DataType& tensor) const {
    DataType type = options_.type                   ? *options_.type
                    : tensor.kind == Kind::bfloat16 ? float32()
                                                    : tensor;
    if (type.kind != Kind::floating && !type.is_integer() && type.kind != Kind::boolean)
      throw unsupported(fmt::format(
          "predictions of the type {} cannot be written; pass dtype= with a type of numbers",
          type.name()));
    return type;
  }

  /// The tensor's; of a variable among others in it, its own.
  Json attributes_of(const Json& entry, const std::string& variable) const {
    if (entry["variables"].size() <= 1) return entry["attributes"];
    const Variable* found = view_.dataset()->find(variable);
    if (found == nullptr) return Json::object();
    Json attributes = decoded_attributes(*found);
    attributes.erase("dtype");
    return attributes;
  }

  /// For normalized values the units are called original_units.
  void name_units(Json& attributes, bool normalized) const {
    if (options_.denormalize && attributes.contains("original_units"))
      rename_key(attributes, "original_units", "units");
    else if (!options_.denormalize && normalized && attributes.contains("units"))
      rename_key(attributes, "units", "original_units");
  }

  /// Names become folders of the output; those of dimensions, too, for their labels.
  void check_names() const {
    const auto is_folder = [](const std::string& name) {
      return is_file_name(name) && name.find_first_not_of('.') != std::string::npos &&
             name != "zarr.json" && !name.starts_with(".batchfs");
    };
    std::set<std::string> dims;  // of all arrays
    for (const PredictedArray& array : arrays_) {
      std::set<std::string> own;
      for (const PredictedAxis& axis : array.axes) {
        if (!is_folder(axis.name))
          throw unsupported(fmt::format(
              "an output cannot have a dimension that is called '{}'; rename it in the store",
              axis.name));
        if (!own.insert(axis.name).second)
          throw unsupported(
              fmt::format("'{}' would have two dimensions that are called '{}'; pass "
                          "time=\"valid\"",
                          array.name, axis.name));
      }
      dims.merge(own);
    }
    for (const PredictedArray& array : arrays_)
      if (dims.contains(array.name) || !is_folder(array.name))
        throw invalid(fmt::format("an array cannot be called '{}' here; pass name=", array.name));
  }

  const View& view_;
  const DescriptionOptions& options_;
  const std::shared_ptr<const PredictionSamples> samples_;
  const AxisDescriber axes_;
  const Json schema_;
  std::vector<PredictedArray> arrays_;
};

}  // namespace

PredictionDescription describe_predictions(const View& view, const DescriptionOptions& options) {
  if (!view.components().empty())
    throw unsupported(
        "predictions of a mixture cannot be written: create an output for each of its views");
  if (resolved_view(view).contains("xbatcher"))
    throw unsupported(
        "predictions of views with \"xbatcher\" cannot be written: write the view with \"window\"");
  if (options.denormalize && options.reduce)
    throw unsupported(
        "denormalize= does not go with reduce=, whose numbers have no variable: denormalize in the "
        "model");
  PredictionDescription result{{}, samples_of_epoch(view, options.epoch)};
  result.arrays = Describer(view, options, result.epoch.samples).arrays();
  return result;
}

}  // namespace batchfs
