#include "engine/view/tensors/tensor_builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/joined/axis_join.h"
#include "engine/dataset/labels.h"
#include "engine/dataset/read_variable.h"
#include "engine/view/window_checks.h"

namespace batchfs {

void check_tensor_name(const ViewSpec& spec, const std::string& name, const std::string& path) {
  auto fail = [&](std::string_view why) {
    return Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: '{}' cannot be a tensor's name: {}; give it another in \"tensors\"", path,
                    name, why));
  };
  auto has = [&](std::string_view format) {
    return std::find(spec.formats.begin(), spec.formats.end(), format) != spec.formats.end();
  };
  if (!is_file_name(name + ".npy"))
    throw fail("a file's name has 1 to 251 bytes without '/' and is not '..'");
  if (has("safetensors") && name == "__metadata__") throw fail("safetensors keeps it for itself");
  if (has("zarr") && (name.starts_with(".z") || name == "zarr.json"))
    throw fail("Zarr keeps it for itself");
}

const Variable& find_variable(const Dataset& dataset, const std::string& name,
                              const std::string& path) {
  try {
    return dataset.variable(name);
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.why());
  }
}

std::vector<std::string> default_variables(const Dataset& dataset, const ViewSpec& spec,
                                           const std::vector<std::string>& dims) {
  std::vector<std::string> names, others;
  // With several sources, variables that the view names in another place are not made variables by
  // that.
  const auto sources = spec.document.find("sources");
  for (const Variable& variable : dataset.variables()) {
    if (variable.is_coordinate) continue;
    if (const std::size_t colon = variable.name.find(':');
        sources != spec.document.end() && colon != std::string::npos &&
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

std::uint32_t TensorBuilder::use_variable(const std::string& name, const std::string& path) {
  const Variable* variable = &find_variable(dataset_, name, path);
  if (!variable->is_readable())
    throw Error(ErrorCode::not_supported,
                fmt::format("{}: '{}' cannot be read: {}", path, name, variable->unsupported));
  check_repeated_dims(*variable, path);
  if (!fits_tensor(*variable))
    throw Error(ErrorCode::not_supported,
                fmt::format("{}: '{}' is of type {}, which no tensor can hold", path, name,
                            variable->cf.decoded.name()));
  const auto it = std::find_if(set_.variables.begin(), set_.variables.end(),
                               [&](const Variable* used) { return used->name == name; });
  if (it != set_.variables.end()) return static_cast<std::uint32_t>(it - set_.variables.begin());
  std::vector<Positions> stored;
  for (std::size_t d = 0; d < variable->dims.size(); ++d) {
    stored.push_back(axes_.joined.along(*variable, d));
    check_joined(*variable, d, stored.back());
  }
  const auto enter = [&](const Variable& own) {
    const Variable* entered = &own;
    if (own.part >= 0 || own.cf.time == CfDecoding::Time::datetime) {
      auto settled = std::make_shared<Variable>(own);
      settled->cf = settled_decoding(own);
      entered = settled.get();
      set_.settled.push_back(std::move(settled));
    }
    set_.variables.push_back(entered);
  };
  const auto number = static_cast<std::uint32_t>(set_.variables.size());
  if (!variable->is_concatenated()) {
    set_.stored.push_back(std::move(stored));
    enter(*variable);
    return number;
  }
  const std::vector<Positions>& parts =
      axes_.joined.in_parts(*variable->concat, stored[variable->concat_dim]);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    set_.stored.push_back(stored);
    set_.stored.back()[variable->concat_dim] = parts[p];
    enter(variable->part_of(p));
    if (!(set_.variables.back()->cf.decoded == set_.variables[number]->cf.decoded) &&
        !set_.variables.back()->cf.decoded.is_float())
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{}: '{}' is {} in '{}' and {} in '{}'; stores one behind the other "
                      "have values of one type",
                      path, name, set_.variables[number]->cf.decoded.name(),
                      set_.variables[number]->part_name(), set_.variables.back()->cf.decoded.name(),
                      set_.variables.back()->part_name()));
  }
  auto whole = std::make_shared<Variable>(*variable);
  if (whole->cf.time != CfDecoding::Time::none) whole->cf = set_.variables[number]->cf;
  set_.whole.emplace(number, std::move(whole));
  return number;
}

void TensorBuilder::check_repeated_dims(const Variable& variable, const std::string& path) const {
  for (const std::string& dim : variable.dims) {
    const std::string& original = dataset_.original_dim(dim);
    if (original != dim && window_number(axes_.windows, original) >= 0 &&
        window_number(axes_.windows, dim) < 0)
      throw Error(ErrorCode::not_supported,
                  fmt::format("{0}: '{1}' has the dimension '{2}' twice, the second time as '{3}'; "
                              "take windows along '{3}' only or along both, or leave '{1}' out of "
                              "\"variables\"",
                              path, variable.name, original, dim));
  }
}

void TensorBuilder::check_joined(const Variable& variable, std::size_t d,
                                 const Positions& stored) const {
  const AxisJoin* join = variable.join_along(d);
  const std::string& dim = variable.dims[d];
  if (join == nullptr || join->pads() || !stored.has_gaps() ||
      window_number(axes_.windows, dim) >= 0)
    return;
  const Positions& all = axes_.along(dim);
  std::int64_t missing = 0, first = -1;
  for (std::int64_t i = 0; i < stored.size(); ++i)
    if (stored[i] == Positions::kNone && missing++ == 0) first = all[i / join->ratio()];
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: '{}' lacks {} of {} labels of '{}', the first is {}; select others, "
                          "or write \"missing\": \"pad\"",
                          join->path(), join->source(), missing, stored.size(), dim,
                          dataset_.index_of(dim) != nullptr ? label_text(dataset_.index(dim), first)
                                                            : fmt::format("#{}", first)));
}

DataType TensorBuilder::result_type(const Variable& variable) const {
  if (spec_.as_decoded && (variable.cf.decoded.is_float() || variable.cf.decoded.is_integer()))
    return float64();
  const bool normalized = spec_.normalize && spec_.normalize->applies_to(variable);
  if (!normalized && !variable.cf.decoded.is_float()) return variable.cf.decoded;
  if (spec_.dtype) return *spec_.dtype;
  return variable.cf.decoded.is_float() ? variable.cf.decoded : float64();
}

void TensorBuilder::add_converter(std::uint32_t tensor, std::uint32_t variable,
                                  const DataType& type) {
  if (set_.variables[variable]->part == 0)
    for (std::uint32_t p = 1; p < set_.whole_variable(variable).parts.size(); ++p)
      add_converter(tensor, variable + p, type);
  // Shared converters: equal addresses show that two tensors hold the same values of a chunk.
  for (const auto& [of, converter] : set_.converters)
    if (of.second == variable && converter->result() == type) {
      set_.converters.emplace(std::pair(tensor, variable), converter);
      return;
    }
  set_.converters.emplace(std::pair(tensor, variable),
                          std::make_shared<const Converter>(set_.variables[variable]->cf, type,
                                                            finish_of(variable, type)));
}

Finish TensorBuilder::finish_of(std::uint32_t variable, const DataType& type) {
  Finish finish;
  if (spec_.normalize && spec_.normalize->applies_to(*set_.variables[variable])) {
    auto& normalization = set_.normalizations[variable];
    if (normalization == nullptr)
      normalization = resolve_normalization(*spec_.normalize, dataset_, *set_.variables[variable],
                                            axes_.selected);
    finish.normalization = normalization;
  }
  if (spec_.missing == ViewSpec::Missing::fill && type.is_float())
    finish.nan_value = spec_.fill_value;
  return finish;
}

std::array<std::byte, 16> TensorBuilder::pad_element(const DataType& type,
                                                     const std::string& path) const {
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

void TensorBuilder::check_normalized_names() const {
  if (!spec_.normalize) return;
  std::vector<std::string> names;
  for (const Variable* variable : set_.variables) names.push_back(variable->name);
  for (std::uint32_t i = 0; i < set_.made.size(); ++i)
    names.push_back(set_.made[i].variable().name);
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

void TensorBuilder::add_values(TensorSpec tensor) {
  for (const TensorSpec& other : set_.specs)
    if (other.name == tensor.name)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("samples.labels: there is a tensor '{}' already; give the column "
                              "another name",
                              tensor.name));
  set_.row_bytes.push_back(tensor.type.itemsize);
  set_.row_shapes.push_back({1});
  set_.specs.push_back(std::move(tensor));
}

void TensorBuilder::add_patches(TensorSpec spec, VariablePlacement placement, Dims patch_shape,
                                std::int64_t patch_bytes) {
  const std::uint32_t v = placement.variable;
  const auto t = static_cast<std::uint32_t>(set_.specs.size());
  if (const Variable& whole = set_.whole_variable(v); whole.is_concatenated())
    for (VariablePlacement& part : axes_.joined.in_parts(whole, placement))
      set_.placements.push_back(std::move(part));
  else
    set_.placements.push_back(std::move(placement));
  add_converter(t, v, spec.type);
  c_strides(spec.shape, spec.type.itemsize);  // refuses unaddressable shapes
  set_.row_shapes.push_back(std::move(patch_shape));
  set_.row_bytes.push_back(patch_bytes);
  set_.specs.push_back(std::move(spec));
}

}  // namespace batchfs
