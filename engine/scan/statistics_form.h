#pragma once
// The meaning of the numbers of statistics, and their partial sums: enough to merge shares and to
// write the result without opening the store again.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/dims.h"
#include "engine/base/json.h"
#include "engine/scan/moments_tree.h"
#include "engine/scan/quantiles.h"

namespace batchfs {

struct VariableStatistics {
  std::string name;
  std::vector<std::string> dims;          // that keep numbers of their own, as stored
  Dims shape;                             // of the selection along them
  std::vector<Moments> values;            // C order
  std::string tendency_dim;               // empty: no tendencies
  std::vector<Moments> tendencies;        // C order
  std::vector<QuantileSketch> quantiles;  // C order; empty: none were requested
  std::optional<double> log_scale;        // of log1p, if the numbers are of logarithms
};

struct StatisticsForm {
  static constexpr std::int64_t kMaxEntries = 1 << 24;
  /// With quantiles; and the buckets of all entries together.
  static constexpr std::int64_t kMaxQuantiles = 1 << 14, kAllBuckets = 1 << 22;

  /// An entry is a distinct position along all of `dims`, in C order.
  struct Variable {
    std::string name;
    std::vector<std::string> dims;
    std::vector<std::int64_t> distinct;  // positions, per dimension
    /// Per dimension and selected position its number among the distinct ones; -1: none.
    std::vector<std::vector<std::int64_t>> ranks;
    std::string tendency_dim;
    std::int64_t leaves = 0;
    std::int64_t buckets = 0;              // of the quantiles of an entry; 0: no quantiles
    std::optional<double> log_scale = {};  // VariableStatistics::log_scale

    std::int64_t entries() const;
    Dims shape() const;
    bool operator==(const Variable&) const = default;
  };
  std::vector<Variable> variables;
  Json coordinates = Json::object();  // labels along the dimensions: an object of lists

  Json json() const;
  /// Throws corrupt, invalid_argument.
  static StatisticsForm parse(const JsonRef& json);
};

/// The sums over a run of leaves of one variable.
struct VariableSums {
  std::vector<MomentsNode> values, tendencies;
  std::vector<QuantileSketch> quantiles;  // by entry; empty: none
};
/// A share of the work: sums by variable, empty where the share has no leaf of it.
using StatisticsSums = std::vector<VariableSums>;

/// The sums and their form as bytes. Only the version of batchfs that wrote a task's part reads
/// it.
std::string statistics_part(const StatisticsForm& form, const StatisticsSums& sums);

/// Merges shares.
class StatisticsMerge {
 public:
  explicit StatisticsMerge(StatisticsForm form);
  /// In the order of the leaves. Throws corrupt for sums that do not follow those before.
  void add(StatisticsSums sums);
  /// Throws corrupt when leaves are missing.
  std::vector<VariableStatistics> result() const;
  const StatisticsForm& form() const { return form_; }

 private:
  struct Trees {
    MomentsTree values, tendencies;
    std::vector<QuantileSketch> quantiles;
  };
  StatisticsForm form_;
  std::vector<Trees> trees_;
};

/// Reads the result of statistics_part(). Throws corrupt for anything else; memory is bounded by
/// the size of `bytes`.
struct StatisticsPart {
  StatisticsForm form;
  StatisticsSums sums;
};
StatisticsPart parse_statistics_part(std::string_view bytes, const std::string& where);

/// The object that "normalize" reads, under "variables": an object of variables.
Json statistics_json(const std::vector<VariableStatistics>& statistics, const Json& coordinates);

}  // namespace batchfs
