// batchfs plan: a view's samples and its cost, before anything is read from it.

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/budget.h"
#include "engine/base/counted.h"
#include "engine/base/log.h"
#include "engine/base/strings.h"
#include "engine/scan/sample_scan.h"
#include "engine/view/describe/schema.h"
#include "engine/view/order/shuffle_quality.h"
#include "engine/view/spec.h"
#include "tools/cli/command.h"
#include "tools/cli/samples.h"
#include "tools/cli/text.h"
#include "tools/cli/view_memory.h"
#include "tools/cli/view_options.h"
#include "tools/planning/advice.h"
#include "tools/planning/epoch_cost.h"
#include "tools/planning/explanation_text.h"
#include "tools/planning/node_cost.h"
#include "tools/planning/split_plan.h"
#include "tools/planning/view_cost.h"
#include "tools/planning/window_table.h"
#include "tools/service/serving.h"

namespace batchfs {

namespace {

struct PlanOptions {
  StoreOptions store;
  std::optional<std::string> part;
  std::string view;
  std::int64_t world = 0, nodes = 0;  // 0: not given
  std::int64_t epoch = 0;
  bool json = false, windows = false;
  std::optional<std::int64_t> explained;  // batch
};

/// The figures of a cluster, if one was named.
struct ClusterPlan {
  Cluster cluster;
  std::optional<NodeCost> cost;
  std::optional<double> step_quality;
};

std::string count_text(std::int64_t count) {
  return format_count(static_cast<std::uint64_t>(count));
}

/// Rounds to the significant digits of an estimate.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

/// Scans that read less than this are run, others are described.
constexpr double kCheapScanBytes = 256 << 20;
constexpr std::int64_t kCheapScanChunks = 4096;

Json absent_json(const ViewCost& cost) {
  Json names = Json::array();
  for (const ViewCost::Absent& absent : cost.absent) names.push_back(absent.variable);
  return names;
}

constexpr std::int64_t kMaxRanks = 65536;

/// Estimates below this are shown as one.
constexpr double kNoticeable = 1.25;

/// In bytes.
struct Memory {
  std::uint64_t asked = 0;   // --memory
  std::uint64_t budget = 0;  // of the engine
};

/// The plan of one view.
struct Planned {
  Planned(const std::shared_ptr<const View>& parsed, const OpenedStore& opened,
          const PlanOptions& options);
  Json json() const;
  std::string text() const;
  std::vector<std::string> all_advice() const;
  /// How often a chunk is read in an epoch that decodes this much.
  double reads(double decoded) const {
    return cost.view_bytes == 0 ? 1 : decoded / cost.view_bytes;
  }
  std::string reads_text() const;
  std::string samples_text() const;

  const Memory memory;
  std::optional<ScanCost> scan;
  const std::shared_ptr<const View> view;
  ViewCost cost;
  EpochCost epoch;
  std::optional<ClusterPlan> cluster;
};

/// "exact": the bounds are near each other. "between": they are not, since it depends on time which
/// batches are made ahead, and codecs decode parts of chunks. "estimate": there are none.
const char* certainty(const EpochCost& epoch) {
  if (!epoch.bounds) return "estimate";
  return epoch.is_exact() ? "exact" : "between";
}

/// "each is read once and stays in memory", "each is read about 2.1, at least 1.2 and at most 6.7
/// times an epoch: ...".
std::string Planned::reads_text() const {
  if (epoch.all_stay) return "each is read once and stays in memory";
  const double most = reads(epoch.bounds ? epoch.bounds->most : epoch.decoded);
  if (most < kNoticeable) return "each is read about once an epoch";
  const auto times = [](double number) {
    return fmt::format("{:.{}f}", number, number < 10 ? 1 : 0);
  };
  std::string about = "about " + times(reads(epoch.decoded));
  if (epoch.bounds && !epoch.is_exact())
    about +=
        fmt::format(", at least {} and at most {}", times(reads(epoch.bounds->least)), times(most));
  return fmt::format("each is read {} times an epoch: about {} of them stay in memory", about,
                     estimated_size(epoch.kept));
}

std::optional<ClusterPlan> plan_cluster(const View& view, const ViewCost& cost,
                                        const PlanOptions& options) {
  if (options.world == 0) return std::nullopt;
  ClusterPlan plan{{options.world, std::max<std::int64_t>(1, options.nodes)}, {}, {}};
  plan.cost = estimate_nodes(view, cost, plan.cluster);
  plan.step_quality = shuffle_quality(view, plan.cluster.world);
  return plan;
}

void add_cluster(const ClusterPlan& plan, Json& json) {
  const auto bytes = [](double value) { return Json(static_cast<std::int64_t>(value)); };
  json["world"] = plan.cluster.world;
  json["nodes"] = plan.cluster.nodes;
  json["shuffle_quality_per_step"] = plan.step_quality ? Json(rounded(*plan.step_quality)) : Json();
  json["bytes_fetched"] = json["bytes_fetched_per_node"] = json["copies_per_chunk"] = Json();
  if (!plan.cost) return;
  json["bytes_fetched"] = bytes(plan.cost->all);
  json["bytes_fetched_per_node"] = bytes(plan.cost->all / static_cast<double>(plan.cluster.nodes));
  json["copies_per_chunk"] = rounded(plan.cost->copies);
  json["bytes_fetched_counted"] = plan.cost->counted;
  if (!plan.cost->counted) return;
  json["bytes_fetched_by_node"] = Json::array();
  for (const double node : plan.cost->by_node) json["bytes_fetched_by_node"].push_back(bytes(node));
  json["bytes_fetched_in_next_epoch"] = bytes(*plan.cost->next_epoch);
}

std::vector<std::string> Planned::all_advice() const {
  std::vector<std::string> lines = advice(*view, cost, epoch, memory.budget);
  if (!cluster) return lines;
  if (const auto line = cluster_advice(*view, cluster->cluster)) lines.push_back(*line);
  return lines;
}

std::string cluster_text(const ClusterPlan& plan) {
  const Cluster& cluster = plan.cluster;
  std::string out = fmt::format("\nAn epoch of {} on {}\n", counted(cluster.world, "rank"),
                                counted(cluster.nodes, "node"));
  Table table({"fetching", "unknown: no chunk could be read"});
  if (plan.cost) {
    const NodeCost& cost = *plan.cost;
    table = Table(
        {"fetching", fmt::format("{} for a node, {} in all ({})",
                                 estimated_size(cost.all / static_cast<double>(cluster.nodes)),
                                 estimated_size(cost.all),
                                 cost.counted ? "counted" : "estimated by a formula")});
    table.add({"copies", fmt::format("each chunk leaves the store {:.2f} times", cost.copies)});
    if (cost.next_epoch)
      table.add({"next epoch", fmt::format("{} in all with a --cache-dir that holds the first",
                                           estimated_size(*cost.next_epoch))});
  }
  if (plan.step_quality)
    table.add({"shuffle quality", fmt::format("{:.2f} of a step, to which each rank brings a batch",
                                              *plan.step_quality)});
  return out + table.text();
}

Json Planned::json() const {
  Json json = view_schema(*view);
  json["windows"] = all_windows(*view);
  json["dropped"] = Json::object();
  for (const auto& [restriction, count] : dropped_windows(*view))
    json["dropped"][restriction] = count;
  json["warnings"] = view_warnings(*view);
  if (scan)
    json["scan"] = {{"chunks", scan->chunks},
                    {"decoded_bytes", static_cast<std::int64_t>(scan->decoded_bytes)}};
  const std::optional<double> fetch = cost.fetch_amplification();
  json["batch_bytes"] = static_cast<std::int64_t>(cost.batch_bytes);
  json["operand_bytes"] = static_cast<std::int64_t>(cost.operand_bytes);
  json["epoch_bytes"] = static_cast<std::int64_t>(cost.epoch_bytes);
  json["chunks_per_batch"] = rounded(cost.chunks);
  json["used_bytes_per_batch"] = static_cast<std::int64_t>(cost.used_bytes);
  json["decoded_bytes_per_batch"] = static_cast<std::int64_t>(cost.decoded_bytes);
  json["fetched_bytes_per_batch"] =
      cost.fetched_bytes ? Json(static_cast<std::int64_t>(*cost.fetched_bytes)) : Json();
  json["decode_amplification"] = rounded(cost.decode_amplification());
  json["fetch_amplification"] = fetch ? Json(rounded(*fetch)) : Json();
  json["variables_without_chunks"] = absent_json(cost);
  json["unreadable"] = cost.unreadable;
  json["chunk_reads_per_epoch"] = rounded(cost.reads_per_chunk);
  json["expected_chunk_reads_per_epoch"] = rounded(reads(epoch.decoded));
  json["expected_chunk_reads_are"] = certainty(epoch);
  const auto bound = [this](double EpochCost::Bounds::*decoded) {
    return epoch.bounds ? Json(rounded(reads((*epoch.bounds).*decoded))) : Json();
  };
  json["all_chunks_stay"] = epoch.all_stay;
  json["least_chunk_reads_per_epoch"] = bound(&EpochCost::Bounds::least);
  json["most_chunk_reads_per_epoch"] = bound(&EpochCost::Bounds::most);
  json["shuffle_quality"] = cost.shuffle_quality ? Json(rounded(*cost.shuffle_quality)) : Json();
  json["chunks"] = cost.view_chunks;
  json["decoded_bytes"] = static_cast<std::int64_t>(cost.view_bytes);
  json["memory_need"] = static_cast<std::int64_t>(cost.memory_need);
  json["memory_budget"] = memory.asked;
  json["estimated_from_batches"] = cost.planned;
  if (cluster) add_cluster(*cluster, json);
  json["advice"] = all_advice();
  return json;
}

std::string Planned::samples_text() const {
  const std::string of_epoch =
      view->epoch_samples() == view->samples()
          ? ""
          : fmt::format(", {} an epoch,", count_text(view->epoch_samples()));
  std::string out = fmt::format(
      "View {}: {}{}{} in {} of {}, {}\n\n", printable(view->name()), scan ? "at most " : "",
      counted(view->samples(), "sample"), of_epoch, counted(view->batches(), "batch", "batches"),
      count_text(view->batch_size()), counted(view->spec().epochs, "epoch"));
  if (const Dropped dropped = dropped_windows(*view); !dropped.empty()) {
    std::vector<std::string> parts;
    for (const auto& [restriction, count] : dropped)
      parts.push_back(fmt::format("{} by {}", count_text(count), restriction));
    out += fmt::format("Of {}, not samples: {}\n\n", counted(all_windows(*view), "window"),
                       join(parts, ", "));
  }
  for (const std::string& warning : view_warnings(*view))
    out += fmt::format("Warning: {}\n\n", printable(warning));
  return out;
}

std::string Planned::text() const {
  std::string out = samples_text();
  Table tensors({"tensor", "type", "dimensions", "shape of a full batch"});
  for (const TensorSpec& tensor : view->tensors()) {
    tensors.add({printable(tensor.name), tensor.type.name(), printable(join(tensor.dims, ", ")),
                 shape_text(tensor.shape)});
  }
  out += tensors.text();

  out += cost.planned.size() > 1
             ? fmt::format("\nOne batch, the average of {}\n", cost.planned.size())
             : "\nOne batch\n";
  Table table({"size", estimated_size(cost.batch_bytes)});
  table.add({"chunks",
             fmt::format("{:.4g}, {} decoded", cost.chunks, estimated_size(cost.decoded_bytes))});
  if (cost.operand_bytes > 0)
    table.add({"operands", fmt::format("{} of channels that are combined, while the batch is made",
                                       estimated_size(cost.operand_bytes))});
  table.add({"memory", fmt::format("{} of a budget of {}", estimated_size(cost.memory_need),
                                   format_size(memory.asked))});
  out += table.text();

  out += "\nAn epoch\n";
  Table epoch_table({"size", estimated_size(cost.epoch_bytes)});
  epoch_table.add({"chunks", fmt::format("{}, {} decoded; {}", count_text(cost.view_chunks),
                                         estimated_size(cost.view_bytes), reads_text())});
  if (const double factor = amplification(*view, cost, epoch); factor >= kNoticeable)
    epoch_table.add(
        {"decoding", fmt::format("{:.3g} bytes for each byte that batches use", factor)});
  if (cost.fetched_bytes == 0.0) {
    epoch_table.add({"fetching", "none: no chunk that was examined exists"});
  } else if (cost.fetched_bytes && cost.decoded_bytes > 0) {
    const double fetched = epoch.decoded * *cost.fetched_bytes / cost.decoded_bytes;
    epoch_table.add({"fetching", fmt::format("{} from the store", estimated_size(fetched))});
  } else {
    epoch_table.add({"fetching", "unknown: no chunk could be read"});
  }
  if (cost.shuffle_quality)
    epoch_table.add({"shuffle quality",
                     fmt::format("{:.2f} (0: a batch holds neighbours, 1: samples from anywhere)",
                                 *cost.shuffle_quality)});
  out += epoch_table.text();
  if (cluster) out += cluster_text(*cluster);

  if (scan)
    out += fmt::format(
        "\nMissing values\n  A scan before the first batch determines which samples are skipped: "
        "it reads {} chunks, "
        "{} decoded,\n  once; its result is kept in the cache directory. The numbers here are "
        "without it.\n",
        count_text(scan->chunks), estimated_size(scan->decoded_bytes));

  out += "\nAdvice\n";
  const std::vector<std::string> lines = all_advice();
  for (const std::string& line : lines) out += "  " + printable(line) + "\n";
  if (lines.empty()) out += "  Nothing to change.\n";
  return out;
}

/// The view with its samples, or with every window as one; `scan` then describes the required scan.
std::shared_ptr<const View> view_to_plan(const std::shared_ptr<const View>& view,
                                         const OpenedStore& opened, const StoreOptions& options,
                                         std::optional<ScanCost>& scan) {
  if (const auto known = known_samples(view, opened, options)) return known;
  ScanCost cost;
  if (const auto components = view->components(); components.empty())
    cost = scan_cost(*view);
  else
    for (const auto& component : components) {
      if (!component->needs_scan()) continue;
      const ScanCost own = scan_cost(*component);
      cost.chunks += own.chunks;
      cost.decoded_bytes += own.decoded_bytes;
    }
  if (cost.decoded_bytes <= kCheapScanBytes && cost.chunks <= kCheapScanChunks) {
    Log log;
    Engine engine({.threads = options.threads,
                   .memory = options.memory,
                   .prefetch = false,
                   .held = held_memory(opened, {view})},
                  log);
    return find_samples(view, opened, options, engine, log);
  }
  scan = cost;
  return with_samples(*view, nullptr);
}

Planned::Planned(const std::shared_ptr<const View>& parsed, const OpenedStore& opened,
                 const PlanOptions& options)
    : memory{options.store.memory != 0 ? options.store.memory : default_memory_budget(),
             opened.budget},
      view(view_to_plan(parsed, opened, options.store, scan)) {
  check_files({view}, MemoryFiles(), memory.budget);
  cost = estimate_cost(*view);
  cluster = plan_cluster(*view, cost, options);
  if (cluster && view->order() != nullptr)
    cost.lanes = static_cast<double>(cluster->cluster.lanes_of_node(view->order()->lanes));
  epoch = estimate_epoch(*view, cost, static_cast<double>(memory.budget));
}

/// Plans all parts of a split; in JSON, the plan of each.
std::string plan_split(const OpenedViews& opened, const PlanOptions& options) {
  std::vector<std::shared_ptr<const View>> views;
  Json plans = Json::object();
  bool scanned = true;
  for (const auto& parsed : opened.views) {
    if (options.json) {
      const Planned planned(parsed, opened.opened, options);
      plans[planned.view->spec().part.name] = planned.json();
      views.push_back(planned.view);
      continue;
    }
    std::optional<ScanCost> scan;
    views.push_back(view_to_plan(parsed, opened.opened, options.store, scan));
    check_files({views.back()}, MemoryFiles(), opened.opened.budget);
    scanned = scanned && !scan;
  }
  const SplitPlan plan = plan_parts(views);
  return options.json ? json_text(split_json(plan, std::move(plans))) + "\n"
                      : split_text(plan, scanned);
}

/// `--windows`: the samples of an epoch as .npy.
void write_windows(const PlanOptions& options, Output& output) {
  output.expect_binary("write it to a file: > windows.npy");
  const OpenedView opened = open_view(options.store, options.view, {.part = options.part});
  const auto view = find_samples(opened, options.store);
  write_window_table(*view, options.epoch,
                     [&](std::span<const std::byte> bytes) { output.write(bytes); });
}

/// `--explain`: why a batch fetches and decodes what it does.
std::string explain(const PlanOptions& options) {
  const OpenedView opened = open_view(options.store, options.view, {.part = options.part});
  const auto view = find_samples(opened, options.store);
  if (options.explained >= view->batches())
    throw Error(ErrorCode::not_found,
                fmt::format("there is no batch {}: an epoch has {}, numbered from 0",
                            *options.explained, count_text(view->batches())),
                options.view);
  const std::uint64_t budget = opened.opened.budget;
  check_files({view}, MemoryFiles(), budget);
  const ViewCost cost = estimate_cost(*view);
  const EpochCost epoch = estimate_epoch(*view, cost, static_cast<double>(budget));
  const std::size_t most = options.json ? kListedInJson : kListedInText;
  const BatchExplanation explanation =
      explain_batch(*view, options.epoch, *options.explained, cost, epoch, most);
  return options.json ? json_text(explanation_json(*view, explanation, budget)) + "\n"
                      : explanation_text(*view, explanation, budget);
}

}  // namespace

CommandAction setup_plan(CLI::App& app) {
  const auto options = std::make_shared<PlanOptions>();
  add_store_options(app, options->store);
  add_other_stores(app, options->store);
  app.add_option("--view", options->view, "the view file; - is standard input")
      ->required()
      ->type_name("FILE");
  add_part_option(app, options->part);
  app.add_option("--world", options->world, "the number of ranks that will read the view")
      ->type_name("W")
      ->check(CLI::Range(std::int64_t{1}, kMaxRanks));
  app.add_option("--nodes", options->nodes, "the number of machines that they run on (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, kMaxRanks));
  app.add_flag("--json", options->json, "write JSON, for programs");
  app.add_flag("--windows", options->windows,
               "write the epoch's samples as .npy: of each the batch, its number, and where its "
               "window begins")
      ->excludes("--json")
      ->excludes("--world");
  app.add_option("--explain", options->explained,
                 "report why this batch fetches and decodes what it does, chunk by chunk")
      ->type_name("BATCH")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 62).description(""))
      ->excludes("--windows")
      ->excludes("--world");
  const CLI::Option* epoch =
      app.add_option("--epoch", options->epoch, "the epoch of --windows and --explain (default: 0)")
          ->type_name("N")
          ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 62).description(""));
  return [options, epoch](Output& output) {
    if (options->windows) {
      write_windows(*options, output);
      return;
    }
    if (epoch->count() > 0 && !options->explained)
      throw UsageError{"--epoch goes with --windows or --explain"};
    if (options->explained) {
      output.write(explain(*options));
      return;
    }
    if (options->nodes > options->world)
      throw UsageError{options->world == 0
                           ? "--nodes needs --world, the number of ranks on all of them"
                           : fmt::format("--nodes {} is more than --world {}: a node has at least "
                                         "one rank",
                                         options->nodes, options->world)};
    const OpenedViews opened = open_parts(options->store, options->view, options->part);
    if (opened.views.size() > 1) {
      output.write(plan_split(opened, *options));
      return;
    }
    const Planned planned(opened.views.front(), opened.opened, *options);
    output.write(options->json ? json_text(planned.json()) + "\n" : planned.text());
  };
}

}  // namespace batchfs
