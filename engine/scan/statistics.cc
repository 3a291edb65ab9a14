#include "engine/scan/statistics.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/dataset/labels.h"
#include "engine/scan/joined_statistics.h"
#include "engine/scan/statistics_pass.h"
#include "engine/scan/swept_channel.h"
#include "engine/view/list/sample_starts.h"
#include "engine/view/samples/restrictions.h"
#include "engine/view/split/part_boxes.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs {

std::vector<std::string> vertical_dims(const Dataset& dataset) {
  static constexpr std::array<std::string_view, 21> kNames = {"level",         "lev",
                                                              "plev",          "levels",
                                                              "pressure",      "pressure_level",
                                                              "isobaricInhPa", "model_level",
                                                              "hybrid",        "sigma",
                                                              "height",        "altitude",
                                                              "depth",         "layer",
                                                              "nlevel",        "heightAboveGround",
                                                              "soil_layer",    "channel",
                                                              "channels",      "band",
                                                              "variable"};
  std::vector<std::string> dims;
  for (const auto& [dim, size] : dataset.dims()) {
    bool vertical =
        std::find(kNames.begin(), kNames.end(), dataset.original_dim(dim)) != kNames.end();
    if (const Variable* index = dataset.index_of(dim)) {
      const auto axis = index->attributes.find("axis");
      vertical = vertical || index->attributes.contains("positive") ||
                 (axis != index->attributes.end() && axis->is_string() && *axis == "Z");
    }
    if (vertical) dims.push_back(dim);
  }
  return dims;
}

std::string time_dim(const Dataset& dataset) {
  for (const auto& [dim, size] : dataset.dims())
    if (const Variable* index = dataset.index_of(dim);
        index && (index->cf.decoded.kind == Kind::datetime || index->cf.counts_from))
      return dim;
  for (const auto& [dim, size] : dataset.dims())
    if (dim == "time") return dim;
  return {};
}

namespace {

/// The dimensions that the parts of the view's split differ along.
std::vector<std::string> split_dims(const View& view) {
  std::vector<std::string> dims;
  if (!view.spec().split) return dims;
  visit_windows(view, [&](const RestrictedView& restricted, const ViewScan&) {
    const PartBoxes boxes(restricted, *view.spec().split, view.spec().part);
    for (const SplitAxis& axis : boxes.axes()) dims.push_back(axis.dim);
  });
  return dims;
}

}  // namespace

std::vector<std::string> StatisticsScan::asked_dims(const Dataset& dataset,
                                                    const StatisticsOptions& options,
                                                    const std::vector<std::string>& cut) {
  if (options.per)
    for (const std::string& dim : *options.per) dataset.dim_size(dim);
  std::vector<std::string> dims;
  for (std::string& dim : options.per ? std::vector(*options.per) : vertical_dims(dataset)) {
    if (std::count(cut.begin(), cut.end(), dim) == 0)
      dims.push_back(std::move(dim));
    else if (options.per)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("no numbers for each '{0}': the parts of the view's split differ along it",
                      dim));
  }
  return dims;
}

StatisticsScan::StatisticsScan(const Dataset& dataset, const View& view,
                               const StatisticsOptions& options) {
  const std::vector<std::string> cut = split_dims(view);
  const std::vector<std::string> per = asked_dims(dataset, options, cut);
  const std::optional<StartTable> known =
      view.order() != nullptr ? std::optional(sample_starts(scan_of(view), dataset)) : std::nullopt;
  const StartTable* const starts = known ? &*known : nullptr;
  const std::string tendency = options.tendency ? *options.tendency : time_dim(dataset);
  if (!tendency.empty()) dataset.dim_size(tendency);
  const std::optional<NormalizeSpec> rule = scanned_rule(view);
  for (std::uint32_t v = 0; v < view.variables().size(); ++v) {
    const Variable& variable = *view.variables()[v];
    const DataType& type = variable.cf.decoded;
    if (!type.is_float() && !type.is_integer()) continue;
    check_joined_statistics(variable, cut);
    std::vector<std::string> kept;
    for (const std::string& dim : per) {
      const std::string why = no_numbers_per(variable, dim);
      if (why.empty())
        kept.push_back(dim);
      else if (options.per)
        throw Error(ErrorCode::not_supported,
                    fmt::format("no numbers for each '{}': {}", dim, why));
    }
    SweptChannel channel = swept_variable(view, v, starts);
    if (rule) take_logarithms(*rule, rule->applies_to(variable), channel);
    passes_.push_back(std::make_unique<VariablePass>(channel, kept, tendency, options.quantiles));
    form_.variables.push_back(passes_.back()->form());
  }
  // "normalize" has one number for all positions of a channel of variables.
  const std::vector<std::string> per_made = options.per.value_or(std::vector<std::string>{});
  for (std::uint32_t c = 0; c < view.tensor_set().made.size(); ++c) {
    if (view.tensor_set().made[c].spec().kind->made == Made::constant) continue;
    SweptChannel channel = swept_made(view, c, *starts);
    const bool is_scaled = view.tensor_set().made[c].spec().kind->is_scaled;
    if (rule) take_logarithms(*rule, rule->applies_to_made(channel.name, is_scaled), channel);
    passes_.push_back(
        std::make_unique<VariablePass>(channel, per_made, tendency, options.quantiles));
    form_.variables.push_back(passes_.back()->form());
  }
  for (const ViewCoordinate& coordinate : view.coordinates())
    for (const StatisticsForm::Variable& variable : form_.variables)
      if (!form_.coordinates.contains(coordinate.name) &&
          std::count(variable.dims.begin(), variable.dims.end(), coordinate.name) > 0) {
        Json labels = Json::array();
        for (std::int64_t i = 0; i < coordinate.values->shape[0]; ++i)
          labels.push_back(label_json(*coordinate.values, i));
        form_.coordinates[coordinate.name] = std::move(labels);
      }
}

StatisticsScan::~StatisticsScan() = default;

StatisticsSums StatisticsScan::read(Engine& engine, int task, int tasks,
                                    const StatisticsProgress& progress) {
  // A leaf belongs to the task that its middle, in decoded bytes, falls into.
  long double all = 0;
  for (const auto& pass : passes_)
    all += static_cast<long double>(pass->form().leaves) *
           static_cast<long double>(pass->leaf_bytes());
  struct Run {
    std::int64_t first = 0, end = 0;
  };
  std::vector<Run> runs;
  long double before = 0;
  std::int64_t pieces = 0, done_before = 0;
  for (const auto& pass : passes_) {
    const auto bytes = static_cast<long double>(pass->leaf_bytes());
    Run run;
    for (std::int64_t leaf = 0; leaf < pass->form().leaves; ++leaf) {
      const long double middle = before + (static_cast<long double>(leaf) + 0.5L) * bytes;
      const int owner = std::min(tasks - 1, static_cast<int>(middle / all * tasks));
      if (owner < task) run.first = leaf + 1;
      if (owner <= task) run.end = leaf + 1;
    }
    before += static_cast<long double>(pass->form().leaves) * bytes;
    runs.push_back(run);
    pieces += pass->pieces(run.first, run.end);
  }
  StatisticsSums sums(passes_.size());
  for (std::size_t v = 0; v < passes_.size(); ++v) {
    if (runs[v].first >= runs[v].end) continue;
    sums[v] = passes_[v]->read(engine, runs[v].first, runs[v].end, [&](std::int64_t done) {
      if (progress) progress(done_before + done, pieces);
    });
    done_before += passes_[v]->pieces(runs[v].first, runs[v].end);
  }
  return sums;
}

std::vector<VariableStatistics> compute_statistics(Engine& engine, const Dataset& dataset,
                                                   const View& view,
                                                   const StatisticsOptions& options,
                                                   const StatisticsProgress& progress) {
  StatisticsScan scan(dataset, view, options);
  StatisticsMerge merge(scan.form());
  merge.add(scan.read(engine, 0, 1, progress));
  return merge.result();
}

}  // namespace batchfs
