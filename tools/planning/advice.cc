#include "tools/planning/advice.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/read_variable.h"
#include "engine/view/describe/resolved.h"
#include "engine/view/order/shuffle_quality.h"
#include "engine/view/sources_spec.h"
#include "engine/view/tensors/tensor_set.h"
#include "tools/cli/text.h"

namespace batchfs {

namespace {

/// A block order in place of a global one that decodes chunks again and again.
void advise_on_global(const View& view, const ViewCost& cost, const EpochCost& epoch, double budget,
                      std::vector<std::string>& lines) {
  if (cost.view_bytes <= epoch.kept) return;
  const double decoded = epoch.decoded;
  Order order = *view.order();
  order.shuffle = Order::Shuffle::block;
  order.buffer = 0;
  const auto block = with_order(view, order);
  const BlockCost block_cost = estimate_block_cost(*block);
  if (block_cost.run_decoded * cost.lanes > epoch.kept || decoded < 1.5 * block_cost.epoch_decoded)
    return;
  const double less = decoded / block_cost.epoch_decoded;
  lines.push_back(
      fmt::format("The global order decodes about {} an epoch, since the data ({}) is larger than "
                  "what the memory budget ({}) can "
                  "keep: \"order\": {{\"shuffle\": \"block\"}} would decode {:.{}f} times less, at "
                  "a shuffle quality of {:.2f}.",
                  estimated_size(decoded), estimated_size(cost.view_bytes), estimated_size(budget),
                  less, less < 10 ? 1 : 0, shuffle_quality(*block).value_or(1)));
}

/// A longer run of groups where samples are mixed badly and memory is left.
void advise_on_block(const View& view, const ViewCost& cost, const EpochCost& epoch,
                     std::vector<std::string>& lines) {
  constexpr double kGoodWindow = 10, kGood = 1 - 1 / kGoodWindow;
  if (!cost.shuffle_quality || *cost.shuffle_quality >= kGood) return;
  const BlockCost now = estimate_block_cost(view);
  const auto buffer = static_cast<double>(view.order()->buffer);
  const double possible =
      std::floor(buffer * epoch.kept / 2 / std::max(now.run_decoded * cost.lanes, 1.0));
  const double better = std::min({possible, std::max(kGoodWindow, 2 * buffer), 1048576.0});
  if (better < 2 * buffer) return;
  Order order = *view.order();
  order.buffer = static_cast<std::int64_t>(better);
  const double quality = shuffle_quality(*with_order(view, order)).value_or(1);
  if (quality < *cost.shuffle_quality + 0.02) return;
  lines.push_back(
      fmt::format("A \"buffer\" of {} groups in \"order\" would mix samples better: a shuffle "
                  "quality of {:.2f} "
                  "instead of {:.2f}. It keeps about {} of decoded chunks.",
                  order.buffer, quality, *cost.shuffle_quality,
                  estimated_size(now.run_decoded * cost.lanes * better / buffer)));
}

/// Fewer groups at a time, or more machines, where the runs of all lanes that one reads are too
/// many.
void advise_on_lanes(const View& view, const ViewCost& cost, const EpochCost& epoch, double budget,
                     std::vector<std::string>& lines) {
  if (cost.lanes == 1) return;
  const double kept = epoch.kept, run = estimate_block_cost(view).run_decoded;
  if (run * cost.lanes <= kept || cost.view_bytes <= kept) return;
  const auto buffer = static_cast<double>(view.order()->buffer);
  const double less = std::floor(buffer * kept / std::max(run * cost.lanes, 1.0));
  lines.push_back(fmt::format(
      "One machine works on {:.0f} lanes of the order at a time, whose runs of groups take {} of "
      "decoded chunks, more than the {} that the memory budget ({}) can keep, so that chunks are "
      "decoded again and again: {}.",
      cost.lanes, estimated_size(run * cost.lanes), estimated_size(kept), estimated_size(budget),
      less >= 1 ? fmt::format("write \"buffer\": {:.0f}, or fewer \"lanes\"", less)
                : "write fewer \"lanes\""));
}

/// Groups of another source's chunks, where those are decoded again and again.
void advise_on_sources(const View& view, const ViewCost& cost, const EpochCost& epoch,
                       std::vector<std::string>& lines) {
  constexpr double kAgain = 1.5, kLess = 1.25;
  const Json document = resolved_view(view);
  if (!document.contains("sources") || cost.view_bytes <= epoch.kept) return;
  const BlockCost now = estimate_block_cost(view);
  struct Bytes {
    double decoded = 0, once = 0;
    double again() const { return decoded - once; }
  };
  std::map<std::string, Bytes> sources;
  for (std::size_t v = 0; v < view.variables().size(); ++v) {
    Bytes& bytes = sources[source_name(document, *view.variables()[v])];
    bytes.decoded += now.variables[v];
    bytes.once += cost.variable_bytes[v];
  }
  if (sources.size() < 2) return;
  const auto dear = std::max_element(
      sources.begin(), sources.end(),
      [](const auto& a, const auto& b) { return a.second.again() < b.second.again(); });
  const auto& [name, bytes] = *dear;
  const std::string by =
      view.order()->by.empty() ? std::string(document["sources"].begin().key()) : view.order()->by;
  if (name == by || bytes.decoded < kAgain * bytes.once) return;
  Order order = *view.order();
  order.by = name;
  for (const std::int64_t buffer : {order.buffer, INT64_C(1)}) {
    order.buffer = buffer;
    BlockCost other;
    try {
      other = estimate_block_cost(*with_order(view, order));
    } catch (const Error&) {
      return;  // its chunks make no groups
    }
    if (other.run_decoded * cost.lanes > epoch.kept ||
        now.epoch_decoded < kLess * other.epoch_decoded)
      continue;
    const double times = bytes.decoded / std::max(bytes.once, 1.0);
    const double less = now.epoch_decoded / other.epoch_decoded;
    lines.push_back(fmt::format(
        "The chunks of '{}' are decoded about {:.{}f} times an epoch, since groups are those of "
        "the chunks of '{}': \"order\": {{\"shuffle\": \"block\", \"by\": \"{}\"{}}} would "
        "decode {:.1f} times less in all.",
        name, times, times < 10 ? 1 : 0, by, name,
        buffer == view.order()->buffer ? "" : fmt::format(", \"buffer\": {}", buffer), less));
    return;
  }
}

/// Labels that a view lacks, as they take too much of the budget (max_coordinates()).
void advise_on_labels(const View& view, std::uint64_t memory, std::vector<std::string>& lines) {
  for (const auto& [dim, size] : view.dataset()->dims()) {
    const Variable* index = view.dataset()->index_of(dim);
    const auto& variables = view.variables();
    const bool used =
        std::any_of(variables.begin(), variables.end(), [&, &name = dim](const Variable* v) {
          return std::find(v->dims.begin(), v->dims.end(), name) != v->dims.end();
        });
    const auto& shown = view.coordinates();
    const bool has = std::any_of(shown.begin(), shown.end(),
                                 [&, &name = dim](const auto& each) { return each.name == name; });
    if (index == nullptr || !used || has) continue;
    lines.push_back(
        fmt::format("Batches have no labels of {}: they take {}, more than is for labels in the "
                    "memory budget ({}). Positions are there; --memory with more gives labels.",
                    printable(dim), estimated_size(static_cast<double>(value_bytes(*index))),
                    estimated_size(static_cast<double>(memory))));
  }
}

void advise_on_order(const View& view, const ViewCost& cost, const EpochCost& epoch, double budget,
                     std::vector<std::string>& lines) {
  if (view.order() == nullptr) return;
  if (view.order()->shuffle == Order::Shuffle::global)
    advise_on_global(view, cost, epoch, budget, lines);
  if (view.order()->shuffle == Order::Shuffle::block) {
    advise_on_lanes(view, cost, epoch, budget, lines);
    advise_on_sources(view, cost, epoch, lines);
    advise_on_block(view, cost, epoch, lines);
  }
}

/// Probably a store that was not written or copied completely.
void advise_on_absent(const ViewCost& cost, std::vector<std::string>& lines) {
  for (const bool all : {true, false}) {
    std::vector<std::string> names;
    for (const ViewCost::Absent& absent : cost.absent)
      if (absent.all == all) names.push_back(absent.variable);
    if (names.empty()) continue;
    lines.push_back(fmt::format(
        "No chunk of {} {}, so the values are fill values. Check that the store was written, or "
        "copied, completely.",
        join(names, ", "), all ? "exists" : "that was examined exists"));
  }
}

bool has_dim(const Variable& variable, const std::string& dim) {
  return std::find(variable.dims.begin(), variable.dims.end(), dim) != variable.dims.end();
}

/// Windows along a dimension that no variable of the view has. Channels of time and place may have
/// it.
void advise_on_windows(const View& view, std::vector<std::string>& lines) {
  constexpr std::size_t kMaxNames = 5;
  if (!view.tensor_set().made.empty()) return;
  for (const WindowDim& window : view.axes().windows) {
    if (view.axes().along(window.name).size() <= window.size) continue;
    std::vector<std::string> dims, others;
    bool is_used = false;
    for (const Variable* const variable : view.variables()) {
      is_used = is_used || has_dim(*variable, window.name);
      for (const std::string& dim : variable->dims)
        if (std::find(dims.begin(), dims.end(), dim) == dims.end()) dims.push_back(dim);
    }
    if (is_used) continue;
    for (const Variable& variable : view.dataset()->variables())
      if (!variable.is_coordinate && has_dim(variable, window.name))
        others.push_back(variable.name);
    if (others.size() > kMaxNames) {
      others.resize(kMaxNames);
      others.emplace_back("...");
    }
    lines.push_back(printable(fmt::format(
        "Windows slide along {0}, which no variable of the view has: samples that differ there "
        "alone are equal. The variables of the view have {1}{2}. Leave {0} out of \"window\", or "
        "take a variable that has it.",
        window.name, join(dims, ", "),
        others.empty()
            ? ""
            : fmt::format("; {} is a dimension of {}", window.name, join(others, ", ")))));
  }
}

}  // namespace

std::optional<std::string> memory_advice(double need, std::uint64_t budget) {
  if (need <= static_cast<double>(budget)) return std::nullopt;
  return fmt::format(
      "A batch needs {} while it is made and the memory budget is {}: use a smaller batch size or "
      "a "
      "larger --memory.",
      estimated_size(need), format_size(budget));
}

std::optional<std::string> cluster_advice(const View& view, const Cluster& cluster) {
  if (view.order() == nullptr || cluster.nodes == 1) return std::nullopt;
  const std::int64_t lanes = view.order()->lanes;
  if (lanes % cluster.world == 0) return std::nullopt;
  if (lanes == 1)
    return fmt::format(
        "Every node reads from all of the order and fetches most chunks: with "
        "\"lanes\": {} in \"order\", each would read a part of it.",
        cluster.world);
  return fmt::format(
      "{} ranks do not divide the {} lanes of the order, so that several ranks read "
      "each lane and fetch its chunks: write a multiple of {} for \"lanes\", or "
      "use a number of ranks that divides {}. The batches are right anyway.",
      cluster.world, lanes, cluster.world, lanes);
}

std::vector<std::string> advice(const View& view, const ViewCost& cost, const EpochCost& epoch,
                                std::uint64_t memory) {
  std::vector<std::string> lines;
  const auto budget = static_cast<double>(memory);
  for (const std::string& why : cost.unreadable)
    lines.push_back("A chunk cannot be read, and batches that need it will fail: " +
                    printable(why) + ". `batchfs check STORE` finds all such chunks.");
  advise_on_absent(cost, lines);
  const auto components = view.components();
  for (const auto& component : components) advise_on_windows(*component, lines);
  if (components.empty()) advise_on_windows(view, lines);
  for (const auto& component : components) advise_on_labels(*component, memory, lines);
  if (components.empty()) advise_on_labels(view, memory, lines);
  if (const auto line = memory_advice(cost.memory_need, memory)) lines.push_back(*line);
  advise_on_order(view, cost, epoch, budget, lines);
  if (cost.waste && amplification(view, cost, epoch) >= 2) {
    const ViewCost::Waste& waste = *cost.waste;
    lines.push_back(
        fmt::format("A batch uses about {:.0f} of the {} positions that a chunk of {} has along "
                    "{}, and the rest is decoded for nothing. "
                    "A store with chunks of about {:.0f} there, or a larger batch, decodes less.",
                    std::max(1.0, waste.used), waste.chunk, waste.variable, waste.dim,
                    std::max(1.0, std::ceil(waste.used))));
  }
  if (cost.batch_bytes > 0 && cost.batch_bytes < 256 << 10 && view.batches() > 1) {
    const double factor = std::ceil((4 << 20) / cost.batch_bytes);
    const double size = std::min(static_cast<double>(view.batch_size()) * factor,
                                 static_cast<double>(view.samples()));
    lines.push_back(
        fmt::format("A batch is only {}: opening the file takes longer than reading it. A batch "
                    "size of about {:.0f} "
                    "is read faster.",
                    estimated_size(cost.batch_bytes), size));
  }
  return lines;
}

}  // namespace batchfs
