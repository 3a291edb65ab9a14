#include "tools/view_cost.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "tools/box_union.h"

namespace batchfs {

namespace {

constexpr std::int64_t kPlannedBatches = 8;
constexpr int kMeasuredChunks = 3;  // per variable

std::string size_text(double bytes) { return format_size(static_cast<std::uint64_t>(bytes)); }

/// Of all tensors of a batch.
double bytes_of(const View& view, const std::vector<Dims>& shapes) {
  double bytes = 0;
  for (std::size_t t = 0; t < shapes.size(); ++t) {
    bytes += static_cast<double>(element_count(shapes[t])) * view.tensors()[t].type.itemsize;
  }
  return bytes;
}

/// Stored bytes per decoded byte of a variable, from a few of its chunks.
class StoredRatio {
 public:
  void measure(const Array& array, std::int64_t linear) {
    if (measured_ == kMeasuredChunks) return;
    ++measured_;
    const Dims chunk = array.grid().chunk(linear);
    try {
      const EncodedChunk encoded = array.fetch(chunk, whole_box(array.grid().chunk_shape()));
      stored_ += static_cast<double>(encoded.bytes.size());
      decoded_ += static_cast<double>(array.chunk_bytes());
    } catch (const Error&) {
      // A chunk that cannot be read says nothing about the others; reading the batch will report it.
    }
  }
  std::optional<double> ratio() const {
    return decoded_ > 0 ? std::optional<double>(stored_ / decoded_) : std::nullopt;
  }

 private:
  int measured_ = 0;
  double stored_ = 0, decoded_ = 0;
};

/// Sums over the planned batches, per variable.
struct VariableSums {
  StoredRatio ratio;
  double chunks = 0, used_elements = 0;
  std::vector<double> used_lengths;  // per dimension: positions of which something is used
};

void add_use(const BatchPlan& plan, const ChunkUse& use, VariableSums& sums) {
  std::vector<Box> boxes;
  double elements = 0;
  Box spanned = plan.parts[use.first_part].source;
  for (std::uint32_t i = 0; i < use.part_count; ++i) {
    boxes.push_back(plan.parts[use.first_part + i].source);
    spanned = bounding_box(spanned, boxes.back());
    elements += static_cast<double>(boxes.back().elements());
  }
  // Overlapping windows take elements more than once: they are used once.
  const std::optional<std::int64_t> covered = covered_elements(boxes);
  sums.used_elements += covered ? static_cast<double>(*covered)
                                : std::min(elements, static_cast<double>(spanned.elements()));
  sums.used_lengths.resize(spanned.shape.size());
  for (std::size_t d = 0; d < spanned.shape.size(); ++d) {
    sums.used_lengths[d] += static_cast<double>(covered_length(boxes, d));
  }
  ++sums.chunks;
}

void find_waste(const Variable& variable, const VariableSums& sums, std::optional<ViewCost::Waste>& worst) {
  const ChunkGrid& grid = variable.array->grid();
  for (std::size_t d = 0; d < sums.used_lengths.size(); ++d) {
    const std::int64_t chunk = std::min(grid.chunk_shape()[d], grid.array_shape()[d]);
    const double used = sums.used_lengths[d] / sums.chunks;
    const double share = used / static_cast<double>(chunk);
    if (share > 0.75 || (worst && share >= worst->used / static_cast<double>(worst->chunk))) continue;
    worst = ViewCost::Waste{variable.name, d < variable.dims.size() ? variable.dims[d] : "characters", used,
                            chunk};
  }
}

}  // namespace

std::optional<double> ViewCost::fetch_amplification() const {
  if (!fetched_bytes || decoded_bytes == 0 || used_bytes == 0) return std::nullopt;
  return *fetched_bytes / used_bytes;
}

ViewCost estimate_cost(const View& view) {
  ViewCost cost;
  const auto& variables = view.variables();
  std::vector<VariableSums> sums(variables.size());
  // The last batch may be short: it is left out when there are others.
  const std::int64_t full = std::max<std::int64_t>(view.batches() - 1, 1);
  const std::int64_t n = std::min(full, kPlannedBatches);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t batch = full / n * i + full % n * i / n;  // full * i / n without overflow
    cost.planned.push_back(batch);
    const BatchPlan plan = view.plan(0, batch);
    cost.batch_bytes += bytes_of(view, plan.shapes);
    for (const ChunkUse& use : plan.chunks) {
      add_use(plan, use, sums[use.variable]);
      sums[use.variable].ratio.measure(*variables[use.variable]->array, use.chunk);
    }
  }

  double fetched = 0;
  bool all_measured = true;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (sums[v].chunks == 0) continue;
    const Array& array = *variables[v]->array;
    const auto chunk_bytes = static_cast<double>(array.chunk_bytes());
    const std::optional<double> ratio = sums[v].ratio.ratio();
    cost.chunks += sums[v].chunks;
    cost.used_bytes += sums[v].used_elements * array.type().itemsize;
    cost.decoded_bytes += sums[v].chunks * chunk_bytes;
    fetched += sums[v].chunks * chunk_bytes * ratio.value_or(0);
    all_measured = all_measured && ratio.has_value();
    cost.view_chunks += array.grid().chunk_count();
    cost.view_bytes += static_cast<double>(array.grid().chunk_count()) * chunk_bytes;
    find_waste(*variables[v], sums[v], cost.waste);
  }
  const auto count = static_cast<double>(n);
  cost.batch_bytes /= count;
  cost.chunks /= count;
  cost.used_bytes /= count;
  cost.decoded_bytes /= count;
  if (all_measured) cost.fetched_bytes = fetched / count;
  cost.epoch_bytes = cost.batch_bytes * static_cast<double>(view.batches() - 1) +
                     bytes_of(view, view.shapes(view.batches() - 1));
  cost.reads_per_chunk = std::max(1.0, cost.chunks * static_cast<double>(view.batches()) /
                                           static_cast<double>(std::max<std::int64_t>(cost.view_chunks, 1)));
  cost.memory_need = 2 * cost.batch_bytes + cost.decoded_bytes;
  return cost;
}

std::vector<std::string> advice(const View& view, const ViewCost& cost, std::uint64_t memory) {
  std::vector<std::string> lines;
  const auto budget = static_cast<double>(memory);
  const Json resolved = view.resolved();
  const auto order = resolved.find("order");
  const bool global_order = order != resolved.end() && order->is_object() &&
                            order->value("shuffle", std::string()) == "global";

  if (cost.memory_need > budget) {
    lines.push_back(fmt::format(
        "A batch needs {} while it is made and the memory budget is {}: take a smaller batch size, or give "
        "more with --memory.", size_text(cost.memory_need), format_size(memory)));
  }
  if (global_order && cost.decode_amplification() >= 2 && cost.view_bytes > budget) {
    lines.push_back(fmt::format(
        "The global order reads each chunk about {:.0f} times an epoch, since the data ({}) is larger than "
        "the memory budget ({}): \"order\": {{\"shuffle\": \"block\"}} reads samples that share chunks "
        "together.", cost.reads_per_chunk, size_text(cost.view_bytes), format_size(memory)));
  }
  if (cost.waste && cost.decode_amplification() >= 2) {
    const ViewCost::Waste& waste = *cost.waste;
    const bool kept = cost.view_bytes <= budget;
    lines.push_back(fmt::format(
        "A batch takes about {:.0f} of the {} that a chunk of {} has along {}{} A store with chunks of about "
        "{:.0f} there, or a batch that takes more, reads less.",
        std::max(1.0, waste.used), waste.chunk, waste.variable, waste.dim,
        kept ? "; the rest is kept in memory for other batches, so this costs only at the start." : ".",
        std::max(1.0, std::ceil(waste.used))));
  }
  if (cost.batch_bytes > 0 && cost.batch_bytes < 256 << 10 && view.batches() > 1) {
    const double factor = std::ceil((4 << 20) / cost.batch_bytes);
    const double size = std::min(static_cast<double>(view.batch_size()) * factor,
                                 static_cast<double>(view.samples()));
    lines.push_back(fmt::format(
        "A batch is only {}: opening the file takes longer than reading it. A batch size of about {:.0f} "
        "is read faster.", size_text(cost.batch_bytes), size));
  }
  return lines;
}

}  // namespace batchfs
