// View files for a fixed dataset; files that they name are a file of statistics.

#include "engine/view/view.h"
#include "engine/base/json_comments.h"
#include "engine/base/yaml.h"
#include "engine/dataset/joined/stack_datasets.h"
#include "engine/view/describe/resolved.h"
#include "engine/view/describe/schema.h"
#include "engine/view/sources_spec.h"
#include "engine/view/tensors/tensor_set.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/engine/dataset/memory_data.h"
#include "tests/unit/engine/view/provenance_of.h"

namespace batchfs {
namespace {

std::shared_ptr<const Dataset> dataset() {
  MemoryData data;
  data.index<std::int64_t>("time", "<i8", counting<std::int64_t>(40),
                           {{"units", "hours since 2000-01-01"}});
  data.index<float>("latitude", "<f4", {60, 50, 40, 30, 20, 10, 0});
  data.index<std::int32_t>("level", "<i4", {500, 700, 850});
  data.declare("t", "<f4", {"time", "level", "latitude"}, {40, 3, 7}, {7, 2, 5});
  data.declare("q", "<i2", {"time", "level", "latitude"}, {40, 3, 7}, {5, 3, 7},
               {{"scale_factor", 0.5}, {"_FillValue", -1}});
  data.declare("orography", "<f8", {"latitude"}, {7}, {7});
  return data.dataset();
}

/// Every source is the dataset, or one copy for each of the source's stores, side by side or one
/// after the other.
std::shared_ptr<const Dataset> joined(const std::shared_ptr<const Dataset>& shared,
                                      const Json& sources) {
  std::set<std::string> named;
  for (const Variable& variable : shared->variables()) named.insert(variable.name);
  std::vector<JoinedSource> all;
  for (const SourceSpec& spec : parse_sources(JsonRef(sources, "sources"))) {
    if (spec.stores.size() > 8) throw Error(ErrorCode::not_supported, "takes longer only");
    std::shared_ptr<const Dataset> own = shared;
    std::vector<ConcatPart> parts;
    for (const std::string& store : spec.stores) parts.push_back({store, shared});
    StackedArrays arrays;
    if (!parts.empty() && spec.concat.dim)
      own = spec.concat.is_new ? stack_datasets(parts, spec.keys, spec.concat, arrays)
                               : concat_datasets(parts, spec.concat);
    all.push_back({spec.name, spec.path, own, spec.joins, named});
  }
  return join_sources(all);
}

}  // namespace
}  // namespace batchfs

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace batchfs;
  static const std::shared_ptr<const Dataset> shared = dataset();
  Input input(data, size);
  const std::string json = input.text();
  const std::string statistics = input.text();
  ViewOptions options;
  options.read_file = [&](const std::string&) { return statistics; };
  options.first_part = true;
  attempt([&] {
    // JSON, or YAML converted to JSON.
    const bool is_yaml = json.starts_with('#');
    const std::string text = is_yaml ? json_of_yaml(json, "view.yaml") : json;
    const Json tree = parse_json(without_comments(text, "view.json"), "view.json");
    const bool has_sources = tree.is_object() && tree.contains("sources");
    const auto of = has_sources ? joined(shared, tree["sources"]) : shared;
    const auto parsed = View::parse(of, text, "view", "view.json", options);
    const auto view = parsed->needs_scan() ? with_samples(*parsed, nullptr) : parsed;
    must(view->samples() > 0 && view->batches() >= 0);
    std::int64_t left = all_windows(*view);
    for (const auto& [restriction, count] : dropped_windows(*view)) left -= count;
    must(left == view->samples());
    view_warnings(*view);
    view_schema(*view);
    resolved_view(*view);
    if (view->batches() == 0 || view->batch_size() > 64)
      return;  // more of the same takes longer only
    const std::int64_t last = view->batches() - 1;
    for (const std::int64_t batch : {std::int64_t{0}, last}) {
      const BatchPlan plan = view->plan(view->spec().epochs - 1, batch);
      must(plan.samples == view->batch_samples(view->spec().epochs - 1, batch));
      for (const std::int64_t sample : plan.samples) must(sample >= 0 && sample < view->samples());
      // Every element lands inside of its tensor.
      for (const Part& part : plan.parts) {
        // Operands of made channels follow the tensors.
        const std::size_t tensors = view->tensors().size();
        const bool is_operand = part.tensor >= tensors;
        const auto item =
            is_operand ? std::int64_t{sizeof(double)}
                       : static_cast<std::int64_t>(view->tensors()[part.tensor].type.itemsize);
        std::int64_t low = part.offset, high = part.offset + item, bytes = item;
        if (is_operand)
          bytes = view->tensor_set().combinations.at(part.tensor - tensors)->sample_bytes() *
                  static_cast<std::int64_t>(plan.samples.size());
        else
          for (const std::int64_t n : plan.shapes[part.tensor]) bytes *= n;
        for (std::size_t d = 0; d < part.source.shape.size(); ++d) {
          if (part.source.shape[d] == 0) return;
          (part.strides[d] < 0 ? low : high) += (part.source.shape[d] - 1) * part.strides[d];
        }
        if (part.repeat >= 0) {
          const Repeat& repeat = plan.repeats.at(static_cast<std::size_t>(part.repeat));
          for (std::size_t d = 0; d < repeat.counts.size(); ++d) {
            must(repeat.counts[d] > 0);
            high += (repeat.counts[d] - 1) * repeat.strides[d];
          }
        }
        must(low >= 0 && high <= bytes);
      }
      provenance_of(view, view->spec().epochs - 1, batch);
    }
  });
  return 0;
}
