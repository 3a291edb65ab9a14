#pragma once
// "normalize" of a view: which variables, and the numbers that `batchfs statistics` or a person
// wrote.
//
// The statistics are an object of variables, {"t2m": {"mean": 280.5, "std": 21.3}}, or a file that
// holds one under "variables". Numbers are lists, nested lists for several, along the dimensions
// that "dims" names; their order is that of "coordinates" where that is present, else of the view's
// selection.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/converter.h"
#include "engine/dataset/selection.h"

namespace batchfs {

/// Returns the text of a file that the view names, relative to the view's own. Throws when it
/// cannot be read.
using ReadFile = std::function<std::string(const std::string& path)>;

struct NormalizeSpec {
  enum class Method : std::uint8_t { zscore, minmax, robust, none } method = Method::zscore;
  bool by_tendency = false;          // zscore divides by the standard deviation of tendencies
  std::optional<double> log_scale;   // log1p comes first, then `method`
  Json statistics = Json::object();  // of each variable
  std::string where;                 // the file, or the JSON path: for messages
  std::optional<std::vector<std::string>> variables;
  std::vector<std::string> except;

  bool needs_statistics() const { return method != Method::none; }
  /// The listed variables, or every float variable that is not excepted.
  bool applies_to(const Variable& variable) const;
  /// Like applies_to(), for a made channel; channels that are scaled already only where they are
  /// listed.
  bool applies_to_made(const std::string& name, bool is_scaled) const;
};

/// `mixed`: the name of the view in a mixture, whose statistics it takes from a file that has those
/// of all; empty: it is in none.
NormalizeSpec parse_normalize(const JsonRef& json, const ReadFile& read_file,
                              const std::string& mixed = {});

/// The subtrahend and divisor of a variable: its mean and standard deviation (zscore), its minimum
/// and its range (minmax), its median and the distance of its quartiles (robust). Throws
/// invalid_argument, naming the variable and what to do, when its numbers are missing; numbers of
/// some positions may be unusable, see check_normalization().
std::shared_ptr<const Normalization> resolve_normalization(
    const NormalizeSpec& spec, const Dataset& dataset, const Variable& variable,
    const std::map<std::string, Positions>& selected);

}  // namespace batchfs
