#include "engine/view/normalize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/base/strings.h"
#include "engine/dataset/labels.h"
#include "engine/view/normalize_rule.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMaxEntries = 1 << 24;

/// The object of variables in a statistics file or in the view itself.
Json statistics_of(const JsonRef& json) {
  if (!json.is_object())
    throw json.error("statistics are an object of variables, or the name of a file that holds one");
  const auto inner = json.find("variables");
  const bool wrapped = inner && inner->is_object() &&
                       std::all_of(inner->value().begin(), inner->value().end(),
                                   [](const Json& v) { return v.is_object(); });
  return wrapped ? inner->value() : json.value();
}

/// The statistics of one view of a mixture, where `json` has those of all.
JsonRef of_mixed(const JsonRef& json, const std::string& name) {
  const auto mix = json.is_object() ? json.find("mix") : std::nullopt;
  if (!mix || !mix->is_object() || json.find("variables")) return json;
  if (name.empty())
    throw json.error("the file is of a mixture; batchfs statistics of this view writes its own");
  if (const auto own = mix->find(name)) return *own;
  std::vector<std::string> names;
  for (const auto& [known, statistics] : mix->members()) names.push_back(known);
  throw json.error(fmt::format("the file has no statistics of '{}' of the mixture{}", name,
                               nearest_or_all(name, names)));
}

/// The statistics of one variable, being looked up in a dataset.
class Lookup {
 public:
  Lookup(const NormalizeSpec& spec, const Dataset& dataset, const Variable& variable,
         const std::map<std::string, Positions>& selected)
      : spec_(spec), dataset_(dataset), variable_(variable), selected_(selected) {
    const auto it = spec.statistics.find(variable.name);
    if (it == spec.statistics.end()) {
      std::vector<std::string> names;
      for (const auto& [name, value] : spec.statistics.items()) names.push_back(name);
      throw fail(fmt::format("there are none for '{}'{}; compute them with batchfs statistics",
                             variable.name, did_you_mean(variable.name, names)));
    }
    entry_ = &*it;
    if (!entry_->is_object())
      throw fail(fmt::format("those of '{}' are not an object", variable.name));
    check_logarithms();
    find_axes();
  }

  /// Entries from one array index to the next.
  Dims strides() const {
    Dims result(variable_.dims.size());
    for (const Axis& axis : axes_) result[axis.dim] = axis.stride;
    return result;
  }

  /// The numbers under `key`, one per position of the array along the axes; NaN where the view
  /// selects nothing.
  /// `key` may be that of an object within: "tendency.std".
  std::vector<double> numbers(const std::string& key) const {
    const std::size_t dot = key.find('.');
    const Json* of = entry_;
    if (dot != std::string::npos) {
      const auto within = entry_->find(key.substr(0, dot));
      of = within != entry_->end() && within->is_object() ? &*within : nullptr;
    }
    const std::string last = dot == std::string::npos ? key : key.substr(dot + 1);
    if (of == nullptr || !of->contains(last))
      throw fail(fmt::format("'{}' has no \"{}\"{}", variable_.name, key,
                             spec_.method == NormalizeSpec::Method::robust
                                 ? "; batchfs statistics --quantiles computes it"
                                 : ""));
    std::vector<double> result(static_cast<std::size_t>(entries_),
                               std::numeric_limits<double>::quiet_NaN());
    fill(of->at(last), key, 0, 0, result);
    return result;
  }

  /// Calls `check(entry, place)` for the entries of all that is selected; `place` is " at
  /// level=500" or nothing.
  template <class Check>
  void for_each_selected(Check&& check) const {
    Reached all{std::vector(variable_.dims.size(), Positions::range(0, 0)), nullptr};
    for (const Axis& axis : axes_)
      all.positions[axis.dim] = in_array(selected_.at(axis.name), axis.dim);
    for_each_at(all, check);
  }
  /// The same for some elements of the variable, distinguished along dims().
  template <class Check>
  void for_each_at(const Reached& reached, Check&& check) const {
    const ReachedChoices needed(reached);
    const auto check_needed = [&](std::size_t entry, std::size_t choice, const std::string& place) {
      if (needed.contains(choice)) check(entry, place);
    };
    visit(reached.positions, needed.steps(), 0, 0, 0, "", check_needed);
  }

  /// Dimensions of the variable that the numbers are along, ascending.
  std::vector<std::size_t> dims() const {
    std::vector<std::size_t> result;
    for (const Axis& axis : axes_) result.push_back(axis.dim);
    std::sort(result.begin(), result.end());
    return result;
  }

  [[nodiscard]] Error fail(const std::string& why) const {
    return Error(ErrorCode::invalid_argument,
                 fmt::format("normalize.statistics: {}; or leave it out: \"except\": [{}]", why,
                             json_text(variable_.name, -1)),
                 spec_.where);
  }

 private:
  struct Axis {
    std::size_t dim;  // of the array
    std::string name;
    std::int64_t stride;  // in entries
    /// Array index of each number in the statistics; kNone: not in the array.
    std::vector<std::int64_t> positions;
    /// By array index of one of several stores: the position of the dataset. Else empty.
    std::vector<std::int64_t> in_dataset;
  };

  /// Where one of several stores has the positions of the dataset along a dimension; null: all are
  /// its own.
  const Positions* part_positions(std::size_t dim) const {
    if (variable_.part < 0 || dim != variable_.concat_dim) return nullptr;
    return &variable_.concat->parts[static_cast<std::size_t>(variable_.part)].positions;
  }

  /// The array indices of positions of the dataset, without those of another store.
  Positions in_array(const Positions& positions, std::size_t dim) const {
    const Positions* const part = part_positions(dim);
    if (part == nullptr) return positions;
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < positions.size(); ++i)
      if ((*part)[positions[i]] != Positions::kNone) indices.push_back((*part)[positions[i]]);
    return Positions::list(std::move(indices));
  }

  Axis axis_along(std::size_t dim) const {
    Axis axis{dim, variable_.dims[dim], 0, positions_of(variable_.dims[dim]), {}};
    const Positions* const part = part_positions(dim);
    if (part == nullptr) return axis;
    for (std::int64_t& position : axis.positions)
      if (position != Positions::kNone) position = (*part)[position];
    axis.in_dataset.resize(static_cast<std::size_t>(variable_.shape[dim]));
    for (std::int64_t i = 0; i < part->size(); ++i)
      if ((*part)[i] != Positions::kNone) axis.in_dataset[static_cast<std::size_t>((*part)[i])] = i;
    return axis;
  }

  /// Numbers that `batchfs statistics` wrote have a count, and name the scale of logarithms.
  void check_logarithms() const {
    const auto log1p = entry_->find("log1p");
    const bool is_of_logarithms = log1p != entry_->end();
    const bool is_same = is_of_logarithms && spec_.log_scale && log1p->is_number() &&
                         log1p->get<double>() == *spec_.log_scale;
    const bool is_unknown = !is_of_logarithms && !entry_->contains("count");
    if (is_same || is_unknown || (!is_of_logarithms && !spec_.log_scale)) return;
    const std::string found = is_of_logarithms ? "log1p with the scale " + json_text(*log1p, -1)
                                               : std::string("the values themselves");
    const std::string wanted = spec_.log_scale
                                   ? "log1p with the scale " + json_text(*spec_.log_scale, -1)
                                   : std::string("the values themselves");
    throw fail(
        fmt::format("those of '{}' are of {}, and the view normalizes {}; compute them "
                    "again with batchfs statistics of this view",
                    variable_.name, found, wanted));
  }

  void find_axes() {
    const auto dims = entry_->find("dims");
    if (dims == entry_->end()) return;
    const std::vector<std::string> names = JsonRef(*dims, variable_.name + ".dims").strings();
    for (const std::string& name : names) {
      const auto it = std::find(variable_.dims.begin(), variable_.dims.end(), name);
      if (it == variable_.dims.end())
        throw fail(fmt::format("those of '{}' are along '{}', which it does not have{}",
                               variable_.name, name, did_you_mean(name, variable_.dims)));
      const auto dim = static_cast<std::size_t>(it - variable_.dims.begin());
      if (variable_.join_along(dim) != nullptr)
        throw fail(
            fmt::format("those of '{}' are along '{}', along which it is joined to another "
                        "source, which is not supported; compute them with --per none",
                        variable_.name, name));
      for (const Axis& axis : axes_)
        if (axis.dim == dim)
          throw fail(fmt::format("\"dims\" of '{}' names '{}' twice", variable_.name, name));
      axes_.push_back(axis_along(dim));
    }
    for (std::size_t a = axes_.size(); a-- > 0;) {
      axes_[a].stride = entries_;
      if (__builtin_mul_overflow(entries_, variable_.shape[axes_[a].dim], &entries_) ||
          entries_ > kMaxEntries)
        throw fail(fmt::format("those of '{}' are too many numbers", variable_.name));
    }
  }

  /// Positions of the numbers along a dimension, in the dataset.
  std::vector<std::int64_t> positions_of(const std::string& dim) const {
    const Positions& used = selected_.at(dim);
    std::vector<std::int64_t> positions;
    const auto coordinates = entry_->find("coordinates");
    const Json* labels = nullptr;
    if (coordinates != entry_->end() && coordinates->is_object()) {
      const auto found = coordinates->find(dim);
      if (found != coordinates->end() && found->is_array()) labels = &*found;
    }
    if (labels == nullptr || dataset_.index_of(dim) == nullptr) {
      for (std::int64_t i = 0; i < used.size(); ++i) positions.push_back(used[i]);
      return positions;
    }
    const NdArray& index = dataset_.index_values(dim);
    std::map<std::string, std::int64_t> by_text;
    std::map<LabelNumber, std::int64_t> by_number;
    const bool numeric = index.type.is_float() || index.type.is_integer();
    for (std::int64_t i = index.shape[0]; i-- > 0;) {  // the first of equal labels is the one
      if (numeric) {
        const LabelNumber number = label_number(index, i);
        if (std::isnan(number)) continue;
        by_number[number] = i;
        // A float32 in JSON's form: 0.1, not 0.1f.
        if (const Json shown = label_json(index, i); shown.is_number())
          by_number[label_number(shown)] = i;
      } else {
        by_text[label_text(index, i)] = i;
      }
    }
    for (const Json& label : *labels) {
      std::int64_t position = Positions::kNone;
      if (numeric && label.is_number()) {
        if (const auto it = by_number.find(label_number(label)); it != by_number.end())
          position = it->second;
      } else if (!numeric) {
        if (const auto it =
                by_text.find(label.is_string() ? label.get<std::string>() : label.dump());
            it != by_text.end())
          position = it->second;
      }
      positions.push_back(position);
    }
    return positions;
  }

  void fill(const Json& json, const std::string& key, std::size_t a, std::int64_t entry,
            std::vector<double>& result) const {
    if (a == axes_.size()) {
      if (json.is_null()) return;  // JSON's form of NaN
      if (!json.is_number() || std::isinf(json.get<double>()))
        throw fail(
            fmt::format("\"{}\" of '{}' is not {}", key, variable_.name,
                        axes_.empty() ? "a number; lists need \"dims\"" : "made of numbers"));
      result[static_cast<std::size_t>(entry)] = json.get<double>();
      return;
    }
    const Axis& axis = axes_[a];
    if (!json.is_array() || json.size() != axis.positions.size())
      throw fail(fmt::format("\"{}\" of '{}' is not a list of {} numbers along '{}'", key,
                             variable_.name, axis.positions.size(), axis.name));
    for (std::size_t i = 0; i < json.size(); ++i)
      if (axis.positions[i] != Positions::kNone)
        fill(json[i], key, a + 1, entry + axis.positions[i] * axis.stride, result);
  }

  template <class Check>
  void visit(const std::vector<Positions>& positions, const Dims& steps, std::size_t a,
             std::int64_t entry, std::int64_t choice, const std::string& place,
             Check& check) const {
    if (a == axes_.size())
      return check(static_cast<std::size_t>(entry), static_cast<std::size_t>(choice), place);
    const Axis& axis = axes_[a];
    const bool labelled = dataset_.index_of(axis.name) != nullptr;
    for (std::int64_t i = 0; i < positions[axis.dim].size(); ++i) {
      const std::int64_t index = positions[axis.dim][i];
      const std::int64_t position =
          axis.in_dataset.empty() ? index : axis.in_dataset[static_cast<std::size_t>(index)];
      const std::string label = labelled ? label_text(dataset_.index(axis.name), position)
                                         : "#" + std::to_string(position);
      visit(positions, steps, a + 1, entry + index * axis.stride, choice + i * steps[axis.dim],
            fmt::format("{}{}{}={}", place, place.empty() ? " at " : ", ", axis.name, label),
            check);
    }
  }

  const NormalizeSpec& spec_;
  const Dataset& dataset_;
  const Variable& variable_;
  const std::map<std::string, Positions>& selected_;
  const Json* entry_ = nullptr;
  std::vector<Axis> axes_;
  std::int64_t entries_ = 1;
};

}  // namespace

bool NormalizeSpec::applies_to(const Variable& variable) const {
  return applies_to_made(variable.name, !variable.cf.decoded.is_float());
}

bool NormalizeSpec::applies_to_made(const std::string& name, bool is_scaled) const {
  const auto is_in = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return variables ? is_in(*variables) : !is_scaled && !is_in(except);
}

namespace {

using Method = NormalizeSpec::Method;

Method parse_method(const JsonRef& json, const std::vector<std::string>& names) {
  const std::string name = json.string();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw json.error(
        fmt::format("'{}' is none of {}{}", name, join(names, ", "), did_you_mean(name, names)));
  return name == "minmax" ? Method::minmax : name == "robust" ? Method::robust : Method::zscore;
}

/// Reads "method" and the keys that go with one.
void parse_methods(const JsonRef& json, NormalizeSpec& spec) {
  const JsonRef method = json.at("method");
  spec.method = parse_method(method, {"zscore", "minmax", "robust", "log1p"});
  const bool log1p = method.string() == "log1p";
  for (const char* key : {"scale", "then"})
    if (const auto found = json.find(key); found && !log1p)
      throw found->error("it goes with \"method\": \"log1p\"");
  if (log1p) {
    const JsonRef scale = json.at("scale");
    spec.log_scale = scale.number();
    if (!(*spec.log_scale > 0) || !std::isfinite(*spec.log_scale))
      throw scale.error("it is not more than 0");
    const auto then = json.find("then");
    spec.method = then ? parse_method(*then, {"zscore", "minmax", "robust"}) : Method::none;
    if (const auto statistics = json.find("statistics"); statistics && !then)
      throw statistics->error(
          "log1p alone needs none; \"then\": \"zscore\" applies them to its values");
  }
  if (const auto by = json.find("by")) {
    if (by->string() != "tendency")
      throw by->error(fmt::format("'{}' is not \"tendency\"", by->string()));
    if (spec.method != Method::zscore) throw by->error("it goes with \"zscore\"");
    spec.by_tendency = true;
  }
}

/// The keys of the numbers that are subtracted and divided by, or subtracted from one another.
struct MethodKeys {
  std::string subtract, low, high;  // without `low`, `high` is the divisor
};
MethodKeys keys_of(const NormalizeSpec& spec) {
  if (spec.method == Method::minmax) return {"min", "min", "max"};
  if (spec.method == Method::robust) return {"median", "p25", "p75"};
  return {"mean", "", spec.by_tendency ? "tendency.std" : "std"};
}

}  // namespace

NormalizeSpec parse_normalize_rule(const JsonRef& json) {
  json.allow_only({"method", "statistics", "variables", "except", "scale", "then", "by"});
  NormalizeSpec spec;
  parse_methods(json, spec);
  const auto variables = json.find("variables"), except = json.find("except");
  if (variables && except) throw except->error("give either \"variables\" or \"except\"");
  if (variables) spec.variables = variables->strings();
  if (except) spec.except = except->strings();
  return spec;
}

NormalizeSpec parse_normalize(const JsonRef& json, const ReadFile& read_file,
                              const std::string& mixed) {
  NormalizeSpec spec = parse_normalize_rule(json);
  if (spec.method == Method::none) return spec;
  const JsonRef statistics = json.at("statistics");
  if (statistics.is_string()) {
    const std::string path = statistics.string();
    if (!read_file)
      throw statistics.error("give the numbers themselves: a file cannot be named here");
    spec.where = path;
    try {
      const Json document = parse_json(read_file(path), path, {.unique_keys = true});
      spec.statistics = statistics_of(of_mixed(JsonRef(document, "statistics"), mixed));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}: {}{}", statistics.path(), path, error.why(),
                                            error.code() == ErrorCode::not_found
                                                ? "; batchfs statistics writes it"
                                                : ""));
    }
  } else {
    spec.statistics = statistics_of(statistics);
  }
  return spec;
}

namespace {

/// The numbers of a method, per entry. `low` is 0 where `high` is the divisor.
struct Numbers {
  Numbers(const Lookup& lookup, const NormalizeSpec& of)
      : spec(of),
        keys(keys_of(of)),
        subtract(lookup.numbers(keys.subtract)),
        high(lookup.numbers(keys.high)),
        low(keys.low.empty() ? std::vector<double>(high.size()) : lookup.numbers(keys.low)) {}

  /// Throws where those of entry `i`, of the variable `name`, cannot be used.
  void check(std::size_t i, const Lookup& lookup, const std::string& name,
             const std::string& place) const {
    for (const auto& [number, key] : {std::pair(subtract[i], keys.subtract),
                                      std::pair(low[i], keys.low), std::pair(high[i], keys.high)})
      if (!std::isfinite(number))
        throw lookup.fail(fmt::format("there is no finite \"{}\" of '{}'{}", key, name, place));
    const double divide = high[i] - low[i];
    if (divide > 0 && std::isfinite(divide)) return;
    if (divide != 0)
      throw lookup.fail(fmt::format("\"{}\" of '{}'{} makes no sense", keys.high, name, place));
    const std::string zero = keys.low.empty()
                                 ? fmt::format("\"{}\" is 0", keys.high)
                                 : fmt::format("\"{}\" is \"{}\"", keys.low, keys.high);
    const char* const method = spec.method == Method::zscore   ? "zscore"
                               : spec.method == Method::minmax ? "minmax"
                                                               : "robust";
    throw lookup.fail(
        fmt::format("'{}' is constant{} ({}), and {} divides by that", name, place, zero, method));
  }

  const NormalizeSpec& spec;
  MethodKeys keys;
  std::vector<double> subtract, high, low;
};

}  // namespace

std::shared_ptr<const Normalization> resolve_normalization(
    const NormalizeSpec& spec, const Dataset& dataset, const Variable& variable,
    const std::map<std::string, Positions>& selected) {
  const DataType& type = variable.cf.decoded;
  if (!type.is_float() && !type.is_integer())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("normalize: '{}' is {}, and only numbers can be normalised; leave it "
                            "out of \"variables\"",
                            variable.name, type.name()));
  auto result = std::make_shared<Normalization>();
  result->log_scale = spec.log_scale;
  if (spec.method == Method::none) {
    result->strides = Dims(variable.dims.size());
    result->subtract = {0};
    result->divide = {1};
    return result;
  }
  const Lookup lookup(spec, dataset, variable, selected);
  Numbers numbers(lookup, spec);
  result->strides = lookup.strides();
  for (std::size_t i = 0; i < numbers.high.size(); ++i) numbers.high[i] -= numbers.low[i];
  result->subtract = std::move(numbers.subtract);
  result->divide = std::move(numbers.high);
  return result;
}

void check_normalization(const NormalizeSpec& spec, const Dataset& dataset,
                         const Variable& variable, const std::map<std::string, Positions>& selected,
                         const FindReached& reached) {
  if (spec.method == Method::none) return;
  const Lookup lookup(spec, dataset, variable, selected);
  const Numbers numbers(lookup, spec);
  const auto check = [&](std::size_t i, const std::string& place) {
    numbers.check(i, lookup, variable.name, place);
  };
  try {
    lookup.for_each_selected(check);
  } catch (const Error&) {
    const Reached needed = reached(lookup.dims());
    if (needed.positions.empty()) throw;
    lookup.for_each_at(needed, check);
  }
}

}  // namespace batchfs
