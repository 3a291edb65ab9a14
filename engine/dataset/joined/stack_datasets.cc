#include "engine/dataset/joined/stack_datasets.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "engine/dataset/axis_coordinates.h"
#include "engine/dataset/labels.h"
#include "engine/dataset/read_variable.h"
#include "engine/zarr/leading_axis.h"

namespace batchfs {

namespace {

/// Does float64 hold it?
bool is_exact(std::int64_t number) {
  constexpr std::int64_t kMax = INT64_C(1) << 53;
  return -kMax <= number && number <= kMax;
}

/// "007" and "-3", not "1e3".
std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !is_exact(number))
    return std::nullopt;
  return number;
}

class Stack {
 public:
  Stack(const std::vector<ConcatPart>& parts, const ConcatRule& rule, StackedArrays& arrays)
      : parts_(parts), rule_(rule), dim_(*rule.dim), arrays_(arrays) {}

  std::shared_ptr<const Dataset> run(const std::vector<std::string>& keys) {
    for (const ConcatPart& part : parts_) check(part);
    find_differing();
    const std::vector<Json> labels = labels_of(keys);
    std::vector<ConcatPart> stacked;
    for (std::size_t p = 0; p < parts_.size(); ++p)
      stacked.push_back({parts_[p].name, widened(*parts_[p].dataset, parts_[p].dataset, labels[p],
                                                 is_text(labels), is_whole(labels))});
    return concat_datasets(stacked, rule_);
  }

 private:
  Error failure(const std::string& why) const {
    return Error(ErrorCode::invalid_argument, rule_.path + ".concat: " + why);
  }

  void check(const ConcatPart& part) const {
    for (const auto& [dim, size] : part.dataset->dims())
      if (dim == dim_)
        throw failure(fmt::format(
            "'{}' has the dimension '{}' already; stores one behind the other along it are "
            "\"concat\": \"{}\"",
            part.name, dim_, dim_));
    const Variable* variable = part.dataset->find(dim_);
    if (variable != nullptr && !variable->dims.empty())
      throw failure(fmt::format("'{}' has a variable '{}'; give the new dimension another name",
                                part.name, dim_));
  }

  /// Finds coordinates whose values differ between the stores, as xarray stacks them with
  /// coords="different". Reads them; large ones are taken to be equal.
  void find_differing() {
    constexpr std::int64_t kMaxValues = 1 << 20;
    const Dataset& first = *parts_.front().dataset;
    for (const Variable& variable : first.variables()) {
      if (!variable.is_coordinate || variable.name == dim_ ||
          first.index_of(variable.name) != nullptr || !variable.is_readable() ||
          element_count(variable.shape) > kMaxValues)
        continue;
      const Dataset::Index values = read_index(variable);
      for (std::size_t p = 1; p < parts_.size(); ++p)
        if (differs(variable, values, parts_[p].dataset->find(variable.name))) {
          differing_.insert(variable.name);
          break;
        }
    }
  }

  static bool differs(const Variable& variable, const Dataset::Index& values,
                      const Variable* other) {
    if (other == nullptr) return true;  // reported where it is used
    if (!other->is_readable() || other->dims != variable.dims || other->shape != variable.shape)
      return true;
    const Dataset::Index others = read_index(*other);
    if (others.cf.note != values.cf.note || !(others.values.type == values.values.type))
      return true;
    return values.values.data.size() > 0 &&
           std::memcmp(values.values.data.data(), others.values.data.data(),
                       values.values.data.size()) != 0;
  }

  static bool is_text(const std::vector<Json>& labels) {
    return std::all_of(labels.begin(), labels.end(),
                       [](const Json& label) { return label.is_string(); });
  }
  static bool is_whole(const std::vector<Json>& labels) {
    return std::all_of(labels.begin(), labels.end(),
                       [](const Json& label) { return label.is_number_integer(); });
  }

  std::vector<Json> labels_of(const std::vector<std::string>& keys) const {
    std::vector<Json> labels = rule_.labels;
    if (!labels.empty()) {
      if (labels.size() != parts_.size())
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{}.concat.labels: {} labels for {} stores", rule_.path,
                                labels.size(), parts_.size()));
      return labels;
    }
    labels = stored_labels();
    if (!labels.empty()) return labels;
    for (const std::string& key : keys)
      if (const auto number = whole_number(key)) labels.emplace_back(*number);
    // Keys as 1 and 01 are texts, too.
    std::vector<Json> sorted = labels;
    std::sort(sorted.begin(), sorted.end());
    if (labels.size() == keys.size() &&
        std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end())
      return labels;
    return {keys.begin(), keys.end()};
  }

  /// The labels from the scalar coordinate that each member has; none where it does not distinguish
  /// the stores.
  std::vector<Json> stored_labels() const {
    std::vector<Json> labels;
    for (const ConcatPart& part : parts_) {
      const Variable* variable = part.dataset->find(dim_);
      if (variable == nullptr || !variable->is_readable()) return {};
      const NdArray value = read_variable(*variable);
      const bool is_number = value.type.is_integer() || value.type.is_float();
      if (!is_number && value.type.kind != Kind::unicode && value.type.kind != Kind::bytes)
        return {};
      labels.push_back(label_json(value, 0));
      if (labels.back().is_number_integer() && !is_exact(labels.back().get<std::int64_t>()))
        return {};
      if (std::count(labels.begin(), labels.end(), labels.back()) > 1) return {};
      if (labels.back().is_string() != labels.front().is_string()) return {};
    }
    return labels;
  }

  /// A dataset in which the data variables have the dimension, of length 1.
  std::shared_ptr<const Dataset> widened(const Dataset& dataset,
                                         const std::shared_ptr<const Dataset>& shared,
                                         const Json& label, bool text, bool whole) {
    Dataset::Parts result;
    result.memory_limit = dataset.memory_limit();
    result.attributes = dataset.attributes();
    result.repeated_dims = dataset.repeated_dims();
    result.dims.emplace_back(dim_, 1);
    for (const auto& [dim, size] : dataset.dims()) {
      result.dims.emplace_back(dim, size);
      if (dataset.index_of(dim) != nullptr) result.indices.emplace(dim, shared);
    }
    for (const Variable& variable : dataset.variables())
      if (variable.name != dim_)
        result.variables.push_back(is_shared(variable) ? variable : widened(variable));
    result.variables.push_back(coordinate(label, text, whole));
    return std::make_shared<const Dataset>(std::move(result));
  }

  bool is_shared(const Variable& variable) const {
    return variable.is_coordinate && !differing_.contains(variable.name);
  }

  Variable widened(const Variable& variable) {
    Variable result = variable;
    result.dims.insert(result.dims.begin(), dim_);
    result.shape = {1};
    for (const std::int64_t length : variable.shape) result.shape.push_back(length);
    // Strings of any length are read as a whole, in an order that a first dimension of length 1
    // does not change.
    if (!variable.is_readable() || variable.strings != nullptr) return result;
    try {
      if (variable.array == nullptr)
        throw Error(ErrorCode::not_supported,
                    "coordinates that follow from an image's metadata are not stacked");
      std::shared_ptr<const Array>& array = arrays_[variable.array];
      if (array == nullptr)
        array = std::make_shared<const Array>(
            variable.array->shared_store(),
            std::make_shared<const ArrayMetadata>(add_leading_axis(variable.array->metadata())));
      result.array = array;
      result.metadata = std::shared_ptr<const ArrayMetadata>(array, &array->metadata());
    } catch (const Error& error) {
      result.array = nullptr;
      result.strings = nullptr;
      result.axis = nullptr;
      result.unsupported = error.why();
    }
    return result;
  }

  Variable coordinate(const Json& label, bool text, bool whole) const {
    ArrayAxis axis;
    axis.name = dim_;
    if (text) {
      axis.labels =
          std::make_shared<const std::vector<std::string>>(std::vector{label.get<std::string>()});
    } else {
      axis.has_values = true;
      axis.whole = whole;
      axis.translation = label.get<double>();
    }
    ArrayMetadata metadata;
    metadata.shape = metadata.chunk_shape = {1};
    metadata.axes = {axis};
    Variable variable;
    variable.dims = {dim_};
    variable.shape = {1};
    variable.metadata = std::make_shared<const ArrayMetadata>(std::move(metadata));
    return axis_coordinates({variable}, [](const std::string&) { return false; }).front();
  }

  const std::vector<ConcatPart>& parts_;
  const ConcatRule& rule_;
  const std::string dim_;
  StackedArrays& arrays_;
  std::set<std::string> differing_;  // coordinates that the members have of their own
};

}  // namespace

std::shared_ptr<const Dataset> stack_datasets(const std::vector<ConcatPart>& parts,
                                              const std::vector<std::string>& keys,
                                              const ConcatRule& rule, StackedArrays& arrays) {
  return Stack(parts, rule, arrays).run(keys);
}

}  // namespace batchfs
