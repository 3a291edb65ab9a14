#include "engine/view/view.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/attributes.h"
#include "engine/dataset/labels.h"
#include "engine/dataset/read_variable.h"
#include "engine/view/order/order_spec.h"
#include "engine/view/samples/missing.h"
#include "engine/view/sources_spec.h"
#include "engine/view/view_kinds.h"
#include "engine/view/view_limits.h"

namespace batchfs {

bool fits_tensor(const Variable& variable) {
  const Kind kind = variable.cf.decoded.kind;
  return variable.array != nullptr && variable.cf.joined_characters == 0 && kind != Kind::unicode &&
         kind != Kind::bytes && kind != Kind::structured && kind != Kind::raw;
}

std::shared_ptr<const View> View::parse(std::shared_ptr<const Dataset> dataset,
                                        const std::string& json, const std::string& name,
                                        const std::string& where, const ViewOptions& options) {
  ViewSpec spec = parse_view_spec(json, name, where, options);
  try {
    return spec.xbatcher ? make_xbatcher_view(std::move(dataset), std::move(spec))
                         : make_window_view(std::move(dataset), std::move(spec));
  } catch (Error& error) {
    throw error.at(where);
  }
}

View::View(std::shared_ptr<const Dataset> dataset, ViewSpec spec)
    : dataset_(std::move(dataset)), spec_(std::move(spec)) {
  const auto& variables = dataset_->variables();
  if (std::any_of(variables.begin(), variables.end(), [](const Variable& v) {
        return v.array != nullptr && !v.array->store().is_local();
      }))
    dataset_->load_index_values();
  for (const auto& [dim, size] : dataset_->dims())
    selected_.emplace(dim, Positions::range(0, size));
  for (const auto& [dim, selector] : spec_.select) {
    try {
      dataset_->dim_size(dim);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("select.{}: {}", dim, error.why()));
    }
    selected_.insert_or_assign(dim, select(*dataset_, dim, selector));
  }
  for (const auto& [dim, original] : dataset_->repeated_dims()) {
    const bool is_named =
        std::any_of(spec_.select.begin(), spec_.select.end(),
                    [&name = dim](const auto& each) { return each.first == name; });
    if (!is_named) selected_.insert_or_assign(dim, selected(original));
  }
}

void View::check_tensor_name(const std::string& name, const std::string& path) const {
  auto fail = [&](std::string_view why) {
    return Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: '{}' cannot be a tensor's name: {}; give it another in \"tensors\"", path,
                    name, why));
  };
  auto has = [&](std::string_view format) {
    return std::find(spec_.formats.begin(), spec_.formats.end(), format) != spec_.formats.end();
  };
  if (!is_file_name(name + ".npy"))
    throw fail("a file's name has 1 to 251 bytes without '/' and is not '..'");
  if (has("safetensors") && name == "__metadata__") throw fail("safetensors keeps it for itself");
  if (has("zarr") && (name.starts_with(".z") || name == "zarr.json"))
    throw fail("Zarr keeps it for itself");
}

const Variable& View::find_variable(const std::string& name, const std::string& path) const {
  try {
    return dataset_->variable(name);
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.why());
  }
}

ViewScan View::scan() const { throw Error(ErrorCode::internal, "this view skips nothing"); }

void View::visit_windows(const UseWindows&) const {
  throw Error(ErrorCode::internal, "this view has no windows");
}

std::shared_ptr<const View> View::with_samples(std::shared_ptr<const SampleIndex>) const {
  throw Error(ErrorCode::internal, "this view skips nothing");
}

std::shared_ptr<const View> View::with_components(std::vector<std::shared_ptr<const View>>) const {
  throw Error(ErrorCode::internal, "this view is not a mixture");
}

std::int64_t View::sample_at(std::int64_t, std::int64_t) const {
  throw Error(ErrorCode::internal, "this view has no samples by position");
}

std::shared_ptr<const View> View::with_order(const Order&) const {
  throw Error(ErrorCode::internal, "this view has one order");
}

std::uint32_t View::use_variable(const std::string& name, const std::string& path) {
  const Variable* variable = &find_variable(name, path);
  if (!variable->is_readable())
    throw Error(ErrorCode::not_supported,
                fmt::format("{}: '{}' cannot be read: {}", path, name, variable->unsupported));
  check_repeated_dims(*variable, path);
  if (!fits_tensor(*variable))
    throw Error(ErrorCode::not_supported,
                fmt::format("{}: '{}' is of type {}, which no tensor can hold", path, name,
                            variable->cf.decoded.name()));
  const auto it = std::find_if(variables_.begin(), variables_.end(),
                               [&](const Variable* used) { return used->name == name; });
  if (it != variables_.end()) return static_cast<std::uint32_t>(it - variables_.begin());
  std::vector<Positions> stored;
  for (std::size_t d = 0; d < variable->dims.size(); ++d) {
    stored.push_back(joined_.along(*variable, d));
    check_joined(*variable, d, stored.back());
  }
  const auto enter = [&](const Variable& own) {
    const Variable* entered = &own;
    if (own.part >= 0 || own.cf.time == CfDecoding::Time::datetime) {
      settled_.push_back(std::make_unique<Variable>(own));
      settled_.back()->cf = settled_decoding(own);
      entered = settled_.back().get();
    }
    variables_.push_back(entered);
  };
  const auto number = static_cast<std::uint32_t>(variables_.size());
  if (!variable->is_concatenated()) {
    stored_.push_back(std::move(stored));
    enter(*variable);
    return number;
  }
  const std::vector<Positions>& parts =
      joined_.in_parts(*variable->concat, stored[variable->concat_dim]);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    stored_.push_back(stored);
    stored_.back()[variable->concat_dim] = parts[p];
    enter(variable->part_of(p));
    if (!(variables_.back()->cf.decoded == variables_[number]->cf.decoded) &&
        !variables_.back()->cf.decoded.is_float())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: '{}' is {} in '{}' and {} in '{}'; stores one behind the other "
                              "have values of one type",
                              path, name, variables_[number]->cf.decoded.name(),
                              variables_[number]->part_name(), variables_.back()->cf.decoded.name(),
                              variables_.back()->part_name()));
  }
  auto whole = std::make_unique<Variable>(*variable);
  if (whole->cf.time != CfDecoding::Time::none) whole->cf = variables_[number]->cf;
  whole_.emplace(number, std::move(whole));
  return number;
}

void View::check_repeated_dims(const Variable& variable, const std::string& path) const {
  for (const std::string& dim : variable.dims) {
    const std::string& original = dataset_->original_dim(dim);
    if (original != dim && window_number(window_dims_, original) >= 0 &&
        window_number(window_dims_, dim) < 0)
      throw Error(ErrorCode::not_supported,
                  fmt::format("{0}: '{1}' has the dimension '{2}' twice, the second time as '{3}'; "
                              "take windows along '{3}' only or along both, or leave '{1}' out of "
                              "\"variables\"",
                              path, variable.name, original, dim));
  }
}

const Variable& View::whole_variable(std::uint32_t number) const {
  const auto found = whole_.find(number);
  return found != whole_.end() ? *found->second : *variables_[number];
}

void View::check_joined(const Variable& variable, std::size_t d, const Positions& stored) const {
  const AxisJoin* join = variable.join_along(d);
  const std::string& dim = variable.dims[d];
  if (join == nullptr || join->pads() || !stored.has_gaps() ||
      window_number(window_dims_, dim) >= 0)
    return;
  const Positions& all = selected(dim);
  std::int64_t missing = 0, first = -1;
  for (std::int64_t i = 0; i < stored.size(); ++i)
    if (stored[i] == Positions::kNone && missing++ == 0) first = all[i / join->ratio()];
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{}: '{}' lacks {} of {} labels of '{}', the first is {}; select others, "
                  "or write \"missing\": \"pad\"",
                  join->path(), join->source(), missing, stored.size(), dim,
                  dataset_->index_of(dim) != nullptr ? label_text(dataset_->index(dim), first)
                                                     : fmt::format("#{}", first)));
}

DataType View::result_type(const Variable& variable) const {
  if (spec_.as_decoded && (variable.cf.decoded.is_float() || variable.cf.decoded.is_integer()))
    return float64();
  const bool normalized = spec_.normalize && spec_.normalize->applies_to(variable);
  if (!normalized && !variable.cf.decoded.is_float()) return variable.cf.decoded;
  if (spec_.dtype) return *spec_.dtype;
  return variable.cf.decoded.is_float() ? variable.cf.decoded : float64();
}

void View::add_converter(std::uint32_t tensor, std::uint32_t variable, const DataType& type) {
  if (variables_[variable]->part == 0)
    for (std::uint32_t p = 1; p < whole_variable(variable).parts.size(); ++p)
      add_converter(tensor, variable + p, type);
  // Shared converters: equal addresses show that two tensors hold the same values of a chunk.
  for (const auto& [of, converter] : converters_)
    if (of.second == variable && converter->result() == type) {
      converters_.emplace(std::pair(tensor, variable), converter);
      return;
    }
  converters_.emplace(
      std::pair(tensor, variable),
      std::make_shared<const Converter>(variables_[variable]->cf, type, finish_of(variable, type)));
}

Finish View::finish_of(std::uint32_t variable, const DataType& type) {
  Finish finish;
  if (spec_.normalize && spec_.normalize->applies_to(*variables_[variable])) {
    auto& normalization = normalizations_[variable];
    if (normalization == nullptr)
      normalization =
          resolve_normalization(*spec_.normalize, *dataset_, *variables_[variable], selected_);
    finish.normalization = normalization;
  }
  if (spec_.missing == ViewSpec::Missing::fill && type.is_float())
    finish.nan_value = spec_.fill_value;
  return finish;
}

std::array<std::byte, 16> View::pad_element(const DataType& type, const std::string& path) const {
  std::array<std::byte, 16> element{};
  auto put = [&](auto value) { std::memcpy(element.data(), &value, sizeof value); };
  if (type.kind == Kind::datetime || type.kind == Kind::timedelta) {
    put(INT64_MIN);
    return element;
  }
  if (type.is_float() || type.kind == Kind::complex) {
    const double value = spec_.pad_value.value_or(std::numeric_limits<double>::quiet_NaN());
    CfDecoding as_is;
    as_is.stored = as_is.decoded = as_is.arithmetic = float64();
    const DataType part = type.is_float() ? type : make_type(Kind::floating, type.itemsize / 2);
    Converter(as_is, part)
        .convert({}, reinterpret_cast<const std::byte*>(&value), {}, element.data(), {});
    return element;
  }
  const double value = spec_.pad_value.value_or(0);
  const int bits = type.kind == Kind::boolean ? 1 : static_cast<int>(type.itemsize) * 8;
  const double low = type.kind == Kind::signed_int ? -std::ldexp(1.0, bits - 1) : 0;
  const double high = std::ldexp(1.0, type.kind == Kind::signed_int ? bits - 1 : bits);
  if (std::trunc(value) != value || !(value >= low && value < high))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: the \"pad_value\" {} of the window cannot be held by {}", path,
                            value, type.name()));
  if (value < 0)
    put(static_cast<std::int64_t>(value));
  else
    put(static_cast<std::uint64_t>(value));  // little-endian: the first bytes are the number
  return element;
}

void View::check_normalized_names() const {
  if (!spec_.normalize) return;
  std::vector<std::string> names;
  for (const Variable* variable : variables_) names.push_back(variable->name);
  for (std::uint32_t i = 0; i < made_.size(); ++i) names.push_back(made_[i].variable().name);
  auto check = [&](const std::vector<std::string>& listed, const char* key) {
    for (const std::string& name : listed)
      if (std::find(names.begin(), names.end(), name) == names.end())
        throw Error(ErrorCode::not_found,
                    fmt::format("normalize.{}: the view has no variable '{}'{}", key, name,
                                did_you_mean(name, names)));
  };
  if (spec_.normalize->variables) check(*spec_.normalize->variables, "variables");
  check(spec_.normalize->except, "except");
}

std::vector<std::string> View::default_variables(const std::vector<std::string>& dims) const {
  std::vector<std::string> names, others;
  // With several sources, variables that the view names in another place are not made variables by
  // that.
  const auto sources = spec_.document.find("sources");
  for (const Variable& variable : dataset_->variables()) {
    if (variable.is_coordinate) continue;
    if (const std::size_t colon = variable.name.find(':');
        sources != spec_.document.end() && colon != std::string::npos &&
        sources->contains(variable.name.substr(0, colon)))
      continue;
    others.push_back(variable.name);
    const bool has_all = std::all_of(dims.begin(), dims.end(), [&](const std::string& dim) {
      return std::find(variable.dims.begin(), variable.dims.end(), dim) != variable.dims.end();
    });
    if (has_all && fits_tensor(variable)) names.push_back(variable.name);
  }
  if (names.empty())
    throw Error(ErrorCode::not_found,
                fmt::format("no variable has the dimensions {}; there are {}", join(dims, ", "),
                            others.empty() ? "no variables here: name a \"group\" of the store"
                                           : join(others, ", ")));
  return names;
}

std::int64_t View::rank_batches(std::int64_t rank, std::int64_t world) const {
  const std::int64_t all = batches();
  switch (spec_.remainder) {
    case ViewSpec::Remainder::keep:
      return rank < all ? (all - rank + world - 1) / world : 0;
    case ViewSpec::Remainder::drop:
      return all / world;
    case ViewSpec::Remainder::pad:
      return (all + world - 1) / world;
  }
  return 0;
}

void View::collect_coordinates() {
  std::uint64_t most = max_coordinates(*dataset_);
  for (const auto& [dim, size] : dataset_->dims()) {
    // Samples have labels along all windows, also where no tensor has the dimension.
    const bool used =
        window_number(window_dims_, dim) >= 0 ||
        std::any_of(variables_.begin(), variables_.end(),
                    [&, &name = dim](const Variable* v) {
                      return std::find(v->dims.begin(), v->dims.end(), name) != v->dims.end();
                    }) ||
        std::any_of(tensors_.begin(), tensors_.end(), [&, &name = dim](const TensorSpec& tensor) {
          return !made_.empty() && std::find(tensor.dims.begin(), tensor.dims.end(),
                                             tensor_dim(name)) != tensor.dims.end();
        });
    const Variable* index = dataset_->index_of(dim);
    if (!used || index == nullptr) continue;
    if (value_bytes(*index) > most) continue;
    std::shared_ptr<const NdArray> values;
    try {
      values = dataset_->labels_at(dim, selected(dim));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::no_memory) throw;
      continue;  // as those of more than max_coordinates()
    }
    if (values->data.size() > most) continue;
    most -= values->data.size();
    const CfDecoding& cf = dataset_->index(dim).cf;
    coordinates_.push_back(
        {dim, {dim}, std::move(values), cf.note, decoded_attributes(*index, cf)});
  }
}

const View::Coordinate* View::index_coordinate(const std::string& dim) const {
  for (const Coordinate& coordinate : coordinates_)
    if (coordinate.name == dim) return &coordinate;
  return nullptr;
}

std::string View::source_prefix(const Variable& variable) const {
  if (variable.part >= 0) return variable.part_name() + ":";
  const std::string source = source_name(spec_.document, variable);
  return source.empty() || source == spec_.document["sources"].begin().key() ? std::string()
                                                                             : source + ":";
}

Json View::resolved() const {
  Json view = spec_.document;
  view["name"] = spec_.name;
  if (!dataset_->path().empty()) view["group"] = dataset_->path();
  if (!view.contains("variables") && !view.contains("tensors")) {
    Json names = Json::array();
    for (const Variable* variable : variables_)
      if (variable->part <= 0) names.push_back(variable->name);
    view["variables"] = std::move(names);
  }
  if (!spec_.xbatcher) {
    Json window = Json::object();
    for (const WindowSpec& dim : spec_.window) {
      Json& own = window[dim.dim] = {{"size", dim.size}};
      if (dim.every)
        own["every"] = duration_text(*dim.every);
      else
        own["stride"] = dim.stride;
      if (dim.origin) own["origin"] = *dim.origin;
      own["wrap"] = dim.wrap;
      own["edge"] = edge_name(dim.edge);
      if (dim.edge != WindowSpec::Edge::drop && spec_.pad_value)
        window[dim.dim]["pad_value"] = *spec_.pad_value;
    }
    view["window"] = std::move(window);
    view["batch"] = {{"size", spec_.batch_size}, {"remainder", remainder_name(spec_.remainder)}};
    view["order"] = order_json(spec_);
  }
  if (spec_.normalize) {
    // With the numbers themselves: readers of this text do not have the file.
    Json statistics = Json::object(), names = Json::array();
    for (const auto& [variable, normalization] : normalizations_) {
      const std::string& variable_name = variables_[variable]->name;
      names.push_back(variable_name);
      if (spec_.normalize->needs_statistics())
        statistics[variable_name] = spec_.normalize->statistics.at(variable_name);
    }
    for (const std::string& channel : made_.normalized()) {
      names.push_back(channel);
      if (spec_.normalize->needs_statistics())
        statistics[channel] = spec_.normalize->statistics.at(channel);
    }
    if (spec_.normalize->needs_statistics()) {
      view["normalize"]["statistics"] = std::move(statistics);
    } else {
      // No statistics name the normalized variables.
      view["normalize"].erase("except");
      view["normalize"]["variables"] = std::move(names);
    }
  }
  // With digests: a file that changed is another view.
  if (spec_.list) view["samples"]["list"] = file_json(spec_.list->file);
  if (spec_.weights && !spec_.weights->file.name.empty())
    view["samples"]["weights"] = file_json(spec_.weights->file);
  view["epochs"] = epochs_json(spec_);
  view["missing"] = {{"nan", missing_name(spec_.missing)}};
  if (spec_.missing == ViewSpec::Missing::fill) view["missing"]["value"] = spec_.fill_value;
  if (spec_.missing == ViewSpec::Missing::skip) add_to_json(spec_.skip, view["missing"]);
  if (spec_.split) view["split"] = split_json(view["split"], spec_.part);
  view["formats"] = spec_.formats;
  return view;
}

}  // namespace batchfs
