#include "engine/view/order/order_spec.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/view/view_hints.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMaxLanes = 1 << 20;
constexpr std::int64_t kMaxSpan = INT64_C(1) << 40;
constexpr std::int64_t kMaxEpochCount = 1'000'000'000;
constexpr std::int64_t kMaxEpochSamples = INT64_C(1) << 60;

}  // namespace

void parse_lanes(const JsonRef& order, ViewSpec& spec) {
  if (spec.xbatcher)
    for (const char* key : {"lanes", "span", "home"})
      if (const auto given = order.find(key))
        throw given->error(
            fmt::format("xbatcher's batches have their own order; leave \"{}\" out", key));
  const auto lanes = order.find("lanes");
  if (lanes) spec.order.lanes = lanes->integer(1, kMaxLanes);
  if (const auto span = order.find("span")) {
    for (const auto& [dim, chunks] : span->members()) {
      const auto is_dim = [&name = dim](const WindowSpec& window) { return window.dim == name; };
      if (std::none_of(spec.window.begin(), spec.window.end(), is_dim)) {
        std::vector<std::string> dims;
        for (const WindowSpec& window : spec.window) dims.push_back(window.dim);
        throw chunks.error(fmt::format("\"window\" has no dimension '{}'{}", dim,
                                       nearest_or_all(dim, std::move(dims))));
      }
      spec.span.emplace_back(dim, chunks.integer(1, kMaxSpan));
    }
  }
  if (const auto home = order.find("home")) {
    spec.order.home = home->boolean();
    if (spec.order.home && spec.order.shuffle != Order::Shuffle::block)
      throw home->error(
          "it keeps groups of samples that share chunks in a lane: it goes with \"shuffle\": "
          "\"block\"");
    if (spec.order.home && !lanes)
      throw home->error("it goes with \"lanes\": the largest number of ranks that will be used");
  }
}

void parse_by(const JsonRef& order, const std::optional<JsonRef>& sources, ViewSpec& spec) {
  const auto by = order.find("by");
  if (!by) return;
  if (spec.xbatcher) throw by->error("xbatcher's batches have their own order; leave \"by\" out");
  spec.order.by = by->string();
  if (spec.order.shuffle != Order::Shuffle::block)
    throw by->error(
        "it says whose chunks make the groups of samples that \"shuffle\": \"block\" keeps "
        "together");
  if (!sources) throw by->error("the view has no \"sources\"");
  if (sources->find(spec.order.by)) return;
  std::vector<std::string> names;
  for (const auto& [name, source] : sources->members()) names.push_back(name);
  throw by->error(fmt::format("\"sources\" has no '{}'{}", spec.order.by,
                              nearest_or_all(spec.order.by, std::move(names))));
}

void parse_epochs(const JsonRef& epochs, ViewSpec& spec) {
  if (!epochs.is_object()) {
    spec.epochs = epochs.integer(1, kMaxEpochCount);
    return;
  }
  allow_only(epochs, {"count", "samples"}, view_hints::kEpochs);
  if (const auto count = epochs.find("count")) spec.epochs = count->integer(1, kMaxEpochCount);
  const auto samples = epochs.find("samples");
  if (!samples) return;
  if (spec.xbatcher)
    throw samples->error("xbatcher's batches have their own order; leave \"samples\" out");
  spec.epoch_samples = samples->integer(1, kMaxEpochSamples);
  for (const WindowSpec& window : spec.window)
    if (window.edge == WindowSpec::Edge::partial)
      throw samples->error(
          fmt::format("the \"partial\" windows of window.{} make short batches, which must be the "
                      "same in each epoch; take \"pad\", or leave \"samples\" out",
                      window.dim));
}

Json order_json(const ViewSpec& spec) {
  Json order = {{"shuffle", shuffle_name(spec.order.shuffle)}, {"seed", spec.order.seed}};
  const bool block = spec.order.shuffle == Order::Shuffle::block;
  if (block) order["buffer"] = spec.order.buffer;
  if (spec.order.shuffle != Order::Shuffle::none || spec.order.lanes != 1)
    order["lanes"] = spec.order.lanes;
  if (!spec.span.empty() || block) {
    Json span = Json::object();
    for (const WindowSpec& window : spec.window) span[window.dim] = 1;
    for (const auto& [dim, chunks] : spec.span) span[dim] = chunks;
    order["span"] = std::move(span);
  }
  if (!spec.order.by.empty()) order["by"] = spec.order.by;
  if (block) order["home"] = spec.order.home;
  return order;
}

Json epochs_json(const ViewSpec& spec) {
  if (!spec.epoch_samples) return spec.epochs;
  return {{"count", spec.epochs}, {"samples", *spec.epoch_samples}};
}

}  // namespace batchfs
