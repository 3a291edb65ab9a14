#include "engine/scan/statistics_form.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "engine/base/json_text.h"

namespace batchfs {

namespace {

/// One entry of a node, as stored: native byte order, which all supported machines share.
struct Row {
  std::int64_t entry, count, nan;
  double sum, sum_rest, m2, m2_rest, min, max;
};
static_assert(sizeof(Row) == 72);

Json nodes_json(const std::vector<MomentsNode>& nodes) {
  Json list = Json::array();
  for (const MomentsNode& node : nodes)
    list.push_back(Json::array({node.first, node.level, node.entries.size()}));
  return list;
}

void append_rows(std::string& bytes, const std::vector<MomentsNode>& nodes) {
  for (const MomentsNode& node : nodes)
    for (std::size_t i = 0; i < node.entries.size(); ++i) {
      const MergedMoments& m = node.moments[i];
      const Row row{node.entries[i], m.total().count, m.total().nan, m.sum().sum(), m.sum().rest(),
                    m.m2().sum(),    m.m2().rest(),   m.total().min, m.total().max};
      bytes.append(reinterpret_cast<const char*>(&row), sizeof row);
    }
}

/// Takes the rows of the nodes off `bytes`.
std::vector<MomentsNode> parse_nodes(const JsonRef& json, const StatisticsForm::Variable& variable,
                                     std::string_view& bytes) {
  std::vector<MomentsNode> nodes;
  for (const JsonRef& one : json.elements()) {
    const std::vector<JsonRef> numbers = one.elements();
    if (numbers.size() != 3) throw one.error("expected [first, level, entries]");
    MomentsNode node;
    node.first = numbers[0].integer(0, MomentsTree::kMaxLeaves - 1);
    node.level = static_cast<int>(numbers[1].integer(0, MomentsTree::kMaxLevel));
    const auto rows = static_cast<std::size_t>(numbers[2].integer(0, variable.entries()));
    if (node.end() > variable.leaves || bytes.size() / sizeof(Row) < rows)
      throw one.error("sums that the part cannot hold", ErrorCode::corrupt);
    // Sums of all leaves must not overflow.
    const std::int64_t most = std::int64_t{1} << (62 - MomentsTree::kMaxLevel + node.level);
    std::int64_t last = -1;
    for (std::size_t i = 0; i < rows; ++i) {
      Row row;
      std::memcpy(&row, bytes.data() + i * sizeof row, sizeof row);
      if (row.entry <= last || row.entry >= variable.entries() || row.count < 0 || row.nan < 0 ||
          row.count > most || row.nan > most)
        throw one.error("sums that cannot be", ErrorCode::corrupt);
      last = row.entry;
      node.entries.push_back(row.entry);
      node.moments.push_back({{row.count, row.nan, 0, 0, row.min, row.max},
                              {row.sum, row.sum_rest},
                              {row.m2, row.m2_rest}});
    }
    bytes.remove_prefix(rows * sizeof(Row));
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Json sketches_json(const std::vector<QuantileSketch>& sketches) {
  Json list = Json::array();
  for (const QuantileSketch& sketch : sketches) {
    const std::size_t buckets = sketch.buckets().size();
    list.push_back(Json::array({sketch.shift(), buckets}));
  }
  return list;
}

void append_buckets(std::string& bytes, const std::vector<QuantileSketch>& sketches) {
  for (const QuantileSketch& sketch : sketches)
    bytes.append(reinterpret_cast<const char*>(sketch.buckets().data()),
                 sketch.buckets().size() * sizeof(QuantileSketch::Bucket));
}

/// Takes the buckets off `bytes`.
std::vector<QuantileSketch> parse_sketches(const JsonRef& json,
                                           const StatisticsForm::Variable& variable,
                                           std::string_view& bytes) {
  std::vector<QuantileSketch> sketches;
  const std::vector<JsonRef> list = json.elements();
  if (!list.empty() &&
      (variable.buckets == 0 || static_cast<std::int64_t>(list.size()) != variable.entries()))
    throw json.error("quantiles that the part cannot hold", ErrorCode::corrupt);
  for (const JsonRef& one : list) {
    const std::vector<JsonRef> numbers = one.elements();
    if (numbers.size() != 2) throw one.error("expected [shift, buckets]");
    const auto shift = static_cast<int>(numbers[0].integer(0, 63));
    const auto count = static_cast<std::size_t>(numbers[1].integer(0, variable.buckets));
    if (bytes.size() / sizeof(QuantileSketch::Bucket) < count)
      throw one.error("more buckets than the part holds", ErrorCode::corrupt);
    std::vector<QuantileSketch::Bucket> buckets(count);
    if (count > 0)
      std::memcpy(buckets.data(), bytes.data(), count * sizeof(QuantileSketch::Bucket));
    bytes.remove_prefix(count * sizeof(QuantileSketch::Bucket));
    sketches.emplace_back(static_cast<std::size_t>(variable.buckets), shift, std::move(buckets));
  }
  return sketches;
}

/// From entries to the places of the selection.
template <class Sums>
std::vector<Sums> in_selection_order(const StatisticsForm::Variable& variable,
                                     const std::vector<Sums>& sums) {
  const Dims shape = variable.shape();
  std::vector<Sums> result;
  for (std::int64_t i = 0; i < element_count(shape); ++i) {
    std::int64_t rest = i, entry = 0, stride = 1;
    bool exists = true;
    for (std::size_t k = shape.size(); k-- > 0;) {
      const std::int64_t rank = variable.ranks[k][static_cast<std::size_t>(rest % shape[k])];
      exists = exists && rank >= 0;
      entry += rank * stride;
      rest /= shape[k];
      stride *= variable.distinct[k];
    }
    result.push_back(exists ? sums[static_cast<std::size_t>(entry)] : Sums{});
  }
  return result;
}

/// Merges the numbers of a further store into those of a variable of concatenated stores.
void add_part(VariableStatistics& whole, const VariableStatistics& part) {
  const auto merge = [&](std::vector<Moments>& into, const std::vector<Moments>& more) {
    if (into.size() != more.size())
      throw Error(ErrorCode::corrupt, "sums that do not go together", whole.name);
    for (std::size_t i = 0; i < into.size(); ++i) {
      MergedMoments merged;
      merged.add(into[i]);
      merged.add(more[i]);
      into[i] = merged.moments();
    }
  };
  merge(whole.values, part.values);
  merge(whole.tendencies, part.tendencies);
  if (whole.quantiles.size() != part.quantiles.size())
    throw Error(ErrorCode::corrupt, "quantiles that do not go together", whole.name);
  for (std::size_t i = 0; i < whole.quantiles.size(); ++i)
    whole.quantiles[i].add(part.quantiles[i]);
}

/// A list along the dimensions, nested, of one number of each entry.
template <class Sums, class Number>
Json nested(const std::vector<Sums>& moments, const Dims& shape, std::size_t d, std::size_t& at,
            Number number) {
  if (d == shape.size()) return number(moments[at++]);
  Json list = Json::array();
  for (std::int64_t i = 0; i < shape[d]; ++i)
    list.push_back(nested(moments, shape, d + 1, at, number));
  return list;
}

template <class Sums, class Number>
Json nested(const std::vector<Sums>& moments, const Dims& shape, Number number) {
  std::size_t at = 0;
  return nested(moments, shape, 0, at, number);
}

/// The quantiles that "normalize": "robust" reads.
constexpr std::pair<const char*, double> kQuantiles[] = {
    {"median", 0.5}, {"p25", 0.25}, {"p75", 0.75}};

/// JSON has no word for NaN and infinity: they are null.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json mean_of(const Moments& m) { return m.count > 0 ? finite(m.mean) : Json(); }
Json std_of(const Moments& m) { return finite(m.std()); }

void add_quantiles(const VariableStatistics& variable, Json& json) {
  for (const auto& [key, q] : kQuantiles)
    json[key] = nested(variable.quantiles, variable.shape, [q = q](const QuantileSketch& all) {
      return finite(all.quantile(q).value);
    });
  json["quantile_error"] =
      nested(variable.quantiles, variable.shape, [](const QuantileSketch& all) {
        double error = 0;
        for (const auto& [key, q] : kQuantiles) {
          const double own = all.quantile(q).error;
          error = own <= error ? error : own;  // NaN without numbers
        }
        return finite(error);
      });
}

}  // namespace

std::int64_t StatisticsForm::Variable::entries() const {
  std::int64_t product = 1;
  for (const std::int64_t count : distinct) product *= count;
  return product;
}

Dims StatisticsForm::Variable::shape() const {
  Dims shape;
  for (const std::vector<std::int64_t>& positions : ranks)
    shape.push_back(static_cast<std::int64_t>(positions.size()));
  return shape;
}

Json StatisticsForm::json() const {
  Json list = Json::array();
  for (const Variable& variable : variables) {
    list.push_back({{"name", variable.name},
                    {"dims", variable.dims},
                    {"distinct", variable.distinct},
                    {"ranks", variable.ranks},
                    {"tendency_dim", variable.tendency_dim},
                    {"leaves", variable.leaves},
                    {"buckets", variable.buckets}});
    if (variable.log_scale) list.back()["log1p"] = *variable.log_scale;
  }
  return {{"variables", std::move(list)}, {"coordinates", coordinates}};
}

StatisticsForm StatisticsForm::parse(const JsonRef& json) {
  StatisticsForm form;
  for (const JsonRef& one : json.at("variables").elements()) {
    Variable variable;
    variable.name = one.at("name").string();
    variable.dims = one.at("dims").strings();
    std::int64_t entries = 1, shape = 1;
    for (const JsonRef& count : one.at("distinct").elements()) {
      variable.distinct.push_back(count.integer(0, kMaxEntries));
      entries *= variable.distinct.back();
      if (entries > kMaxEntries) throw count.error("too many numbers");
    }
    for (const JsonRef& positions : one.at("ranks").elements()) {
      const std::size_t k = variable.ranks.size();
      if (k == variable.distinct.size()) throw positions.error("no dimension has these");
      std::vector<std::int64_t> ranks;
      for (const JsonRef& rank : positions.elements())
        ranks.push_back(rank.integer(-1, variable.distinct[k] - 1));
      shape *= static_cast<std::int64_t>(ranks.size());
      if (shape > kMaxEntries) throw positions.error("too many numbers");
      variable.ranks.push_back(std::move(ranks));
    }
    if (variable.dims.size() != variable.distinct.size() ||
        variable.dims.size() != variable.ranks.size())
      throw one.error("dimensions that do not fit together");
    variable.tendency_dim = one.at("tendency_dim").string();
    variable.leaves = one.at("leaves").integer(0, MomentsTree::kMaxLeaves);
    variable.buckets = one.at("buckets").integer(0, QuantileSketch::kMaxBuckets);
    if (const auto log1p = one.find("log1p")) variable.log_scale = log1p->number();
    if (variable.buckets > 0 && (entries > kMaxQuantiles || shape > kMaxQuantiles))
      throw one.error("too many quantiles");
    form.variables.push_back(std::move(variable));
  }
  const JsonRef coordinates = json.at("coordinates");
  for (const auto& [dim, labels] : coordinates.members()) static_cast<void>(labels.elements());
  form.coordinates = coordinates.value();
  return form;
}

std::string statistics_part(const StatisticsForm& form, const StatisticsSums& sums) {
  Json list = Json::array();
  for (const VariableSums& variable : sums)
    list.push_back({{"values", nodes_json(variable.values)},
                    {"tendencies", nodes_json(variable.tendencies)},
                    {"quantiles", sketches_json(variable.quantiles)}});
  std::string bytes = json_text({{"form", form.json()}, {"sums", std::move(list)}}, -1) + "\n";
  for (const VariableSums& variable : sums) {
    append_rows(bytes, variable.values);
    append_rows(bytes, variable.tendencies);
    append_buckets(bytes, variable.quantiles);
  }
  return bytes;
}

StatisticsPart parse_statistics_part(std::string_view bytes, const std::string& where) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string_view::npos)
    throw Error(ErrorCode::corrupt, "no part of statistics", where);
  const Json header = parse_json(std::string(bytes.substr(0, end)), where);
  bytes.remove_prefix(end + 1);
  const JsonRef root(header, where);
  StatisticsPart part{StatisticsForm::parse(root.at("form")), {}};
  for (const JsonRef& one : root.at("sums").elements()) {
    if (part.sums.size() == part.form.variables.size()) throw one.error("no variable has these");
    const StatisticsForm::Variable& variable = part.form.variables[part.sums.size()];
    VariableSums sums;
    sums.values = parse_nodes(one.at("values"), variable, bytes);
    sums.tendencies = parse_nodes(one.at("tendencies"), variable, bytes);
    sums.quantiles = parse_sketches(one.at("quantiles"), variable, bytes);
    part.sums.push_back(std::move(sums));
  }
  if (part.sums.size() != part.form.variables.size() || !bytes.empty())
    throw Error(ErrorCode::corrupt, "a part of another size than its header says", where);
  return part;
}

StatisticsMerge::StatisticsMerge(StatisticsForm form)
    : form_(std::move(form)), trees_(form_.variables.size()) {
  for (std::size_t v = 0; v < trees_.size(); ++v)
    if (const StatisticsForm::Variable& variable = form_.variables[v]; variable.buckets > 0)
      trees_[v].quantiles.assign(static_cast<std::size_t>(variable.entries()),
                                 QuantileSketch(static_cast<std::size_t>(variable.buckets)));
}

void StatisticsMerge::add(StatisticsSums sums) {
  for (std::size_t v = 0; v < sums.size(); ++v) {
    for (MomentsNode& node : sums[v].values) trees_.at(v).values.add(std::move(node));
    for (MomentsNode& node : sums[v].tendencies) trees_.at(v).tendencies.add(std::move(node));
    for (std::size_t i = 0; i < sums[v].quantiles.size(); ++i)
      trees_[v].quantiles.at(i).add(sums[v].quantiles[i]);
  }
}

std::vector<VariableStatistics> StatisticsMerge::result() const {
  std::vector<VariableStatistics> results;
  for (std::size_t v = 0; v < trees_.size(); ++v) {
    const StatisticsForm::Variable& variable = form_.variables[v];
    const bool has_tendencies = !variable.tendency_dim.empty();
    if (!trees_[v].values.is_whole(variable.leaves) ||
        !trees_[v].tendencies.is_whole(has_tendencies ? variable.leaves : 0))
      throw Error(ErrorCode::corrupt, "partial sums are missing", variable.name);
    VariableStatistics result{
        variable.name,     variable.dims, variable.shape(), {}, variable.tendency_dim, {}, {},
        variable.log_scale};
    result.values = in_selection_order(variable, trees_[v].values.total(variable.entries()));
    if (has_tendencies)
      result.tendencies =
          in_selection_order(variable, trees_[v].tendencies.total(variable.entries()));
    if (variable.buckets > 0) result.quantiles = in_selection_order(variable, trees_[v].quantiles);
    if (!results.empty() && results.back().name == result.name)
      add_part(results.back(), result);
    else
      results.push_back(std::move(result));
  }
  return results;
}

Json statistics_json(const std::vector<VariableStatistics>& statistics, const Json& coordinates) {
  Json variables = Json::object();
  for (const VariableStatistics& variable : statistics) {
    Json json = Json::object();
    if (variable.log_scale) json["log1p"] = *variable.log_scale;
    if (!variable.dims.empty()) {
      json["dims"] = variable.dims;
      Json labels = Json::object();
      for (const auto& [dim, list] : coordinates.items())
        if (std::find(variable.dims.begin(), variable.dims.end(), dim) != variable.dims.end())
          labels[dim] = list;
      json["coordinates"] = std::move(labels);
    }
    json["count"] =
        nested(variable.values, variable.shape, [](const Moments& m) { return Json(m.count); });
    json["nan"] =
        nested(variable.values, variable.shape, [](const Moments& m) { return Json(m.nan); });
    json["mean"] = nested(variable.values, variable.shape, mean_of);
    json["std"] = nested(variable.values, variable.shape, std_of);
    json["min"] =
        nested(variable.values, variable.shape, [](const Moments& m) { return finite(m.min); });
    json["max"] =
        nested(variable.values, variable.shape, [](const Moments& m) { return finite(m.max); });
    if (!variable.quantiles.empty()) add_quantiles(variable, json);
    if (!variable.tendency_dim.empty())
      json["tendency"] = {{"dim", variable.tendency_dim},
                          {"count", nested(variable.tendencies, variable.shape,
                                           [](const Moments& m) { return Json(m.count); })},
                          {"mean", nested(variable.tendencies, variable.shape, mean_of)},
                          {"std", nested(variable.tendencies, variable.shape, std_of)}};
    variables[variable.name] = std::move(json);
  }
  return variables;
}

}  // namespace batchfs
