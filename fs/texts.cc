// The texts that the mount shows: summaries for people, JSON for programs, Prometheus metrics.
// Prometheus text: exposition format 0.0.4.

#include <fmt/format.h>

#include <unistd.h>

#include "engine/base/json_text.h"
#include "engine/base/strings.h"
#include "fs/file_system.h"

namespace batchfs {

namespace {

std::string dims_text(const Dims& dims) {
  std::string text;
  for (std::int64_t n : dims) text += (text.empty() ? "" : ", ") + std::to_string(n);
  return "(" + text + ")";
}

std::string codecs_text(const std::vector<CodecSpec>& codecs) {
  std::string text;
  for (const CodecSpec& codec : codecs) {
    text += (text.empty() ? "" : ", ") + codec.name;
    const auto inner = codec.configuration.find("cname");
    if (inner != codec.configuration.end() && inner->is_string())
      text += "(" + inner->get<std::string>() + ")";
  }
  return text.empty() ? "none" : text;
}

std::uint64_t array_bytes(const ArrayMetadata& array) {
  return static_cast<std::uint64_t>(element_count(array.shape)) * array.type.itemsize;
}

}  // namespace

std::string FileSystem::array_summary(const ArrayEntry& entry) const {
  const ArrayMetadata& array = *entry.metadata;
  std::vector<std::string> dims = dimension_names(array);
  std::string text = fmt::format("{}: {} {}\n", array.path.empty() ? "/" : array.path, array.type.name(),
                                 dims_text(array.shape));
  text += fmt::format("  dimensions  {}\n", dims.empty() ? "none" : join(dims, ", "));
  text += fmt::format("  chunks      {}", dims_text(entry.array ? entry.array->grid().chunk_shape()
                                                                : array.chunk_shape));
  if (entry.array && entry.array->is_sharded())
    text += fmt::format(" in shards {}", dims_text(array.chunk_shape));
  text += fmt::format("\n  codecs      {}\n  size        {}\n", codecs_text(array.codecs),
                      format_size(array_bytes(array)));
  for (const auto& [name, value] : array.attributes.items())
    if (name == "units" || name == "long_name" || name == "standard_name")
      text += fmt::format("  {:<11} {}\n", name, value.is_string() ? value.get<std::string>() : json_text(value, -1));
  if (!entry.unsupported.empty()) text += fmt::format("  not readable: {}\n", entry.unsupported);
  return text;
}

std::string FileSystem::root_summary() const {
  std::string text = fmt::format("{}\nZarr format {}, {} arrays, {} groups, {} of values\n",
                                 options_.store_url, hierarchy_->zarr_format, hierarchy_->arrays.size(),
                                 hierarchy_->groups.size(), format_size(total_bytes_));
  if (!dataset_->dims().empty()) {
    text += "\nDimensions\n";
    for (const auto& [name, size] : dataset_->dims())
      text += fmt::format("  {:<24} {}\n", name, format_count(static_cast<std::uint64_t>(size)));
  }
  for (const bool coordinates : {true, false}) {
    bool first = true;
    for (const Variable& variable : dataset_->variables()) {
      if (variable.is_coordinate != coordinates) continue;
      if (first) text += coordinates ? "\nCoordinates\n" : "\nVariables\n";
      first = false;
      text += fmt::format("  {:<24} {:<16} ({}) {}{}\n", variable.name, variable.cf.decoded.name(),
                          join(variable.dims, ", "), format_size(array_bytes(*variable.metadata)),
                          variable.unsupported.empty() ? "" : "  not readable: " + variable.unsupported);
    }
  }
  if (!tree_.views().empty()) text += "\nViews\n";
  for (const auto& view : tree_.views()) {
    text += fmt::format("  views/{}: {} samples in {} batches of {}\n", view->name(),
                        format_count(static_cast<std::uint64_t>(view->samples())),
                        format_count(static_cast<std::uint64_t>(view->batches())), view->batch_size());
    for (const TensorSpec& tensor : view->tensors())
      text += fmt::format("    {:<22} {:<16} ({}) {}\n", tensor.name, tensor.type.name(),
                          join(tensor.dims, ", "), dims_text(tensor.shape));
  }
  if (tree_.views().empty())
    text += "\nNo views: write one with `batchfs view STORE > view.json`, mount with `--view view.json`.\n";
  return text;
}

std::string FileSystem::store_json() const {
  Json arrays = Json::object();
  for (const ArrayEntry& entry : arrays_) {
    const ArrayMetadata& array = *entry.metadata;
    Json json = {{"shape", std::vector<std::int64_t>(array.shape.begin(), array.shape.end())},
                 {"dims", dimension_names(array)},
                 {"dtype", array.type.name()},
                 {"bytes", array_bytes(array)}};
    if (!entry.unsupported.empty()) json["unsupported"] = entry.unsupported;
    arrays[array.path.empty() ? "/" : array.path] = std::move(json);
  }
  Json views = Json::array();
  for (const auto& view : tree_.views()) views.push_back(view->name());
  return json_text({{"url", options_.store_url},
                    {"snapshot", hierarchy_->snapshot_id},
                    {"zarr_format", hierarchy_->zarr_format},
                    {"consolidated", hierarchy_->consolidated},
                    {"arrays", std::move(arrays)},
                    {"views", std::move(views)}}) +
         "\n";
}

std::string FileSystem::stats_text() const {
  const Counters& counters = engine_.counters();
  Json json = {{"pid", ::getpid()}, {"passthrough", passthrough_.load()}};
  for (const CounterInfo& info : counter_table()) json[std::string(info.name)] = (counters.*info.value).load();
  json["reader_wait_seconds"] = static_cast<double>(counters.reader_wait_nanoseconds.load()) * 1e-9;
  json["memory_budget"] = engine_.budget().limit();
  json["memory_used"] = engine_.budget().used();
  json["chunk_cache_bytes"] = engine_.cache_bytes();
  Json streams = Json::array();
  for (const Prefetcher::StreamState& stream : engine_.streams())
    streams.push_back({{"view", stream.view}, {"format", stream.format}, {"rank", stream.rank},
                       {"world", stream.world}, {"epoch", stream.epoch}, {"batch", stream.batch},
                       {"window", stream.window}});
  json["streams"] = std::move(streams);
  if (options_.handoff_statistics) json["handoff"] = options_.handoff_statistics();
  Json store = Json::object();
  for (const Store::Counter& counter : store_->counters()) store[counter.name] = counter.value;
  if (!store.empty()) json["store"] = std::move(store);
  return json_text(json) + "\n";
}

std::string FileSystem::metrics_text() const {
  const Counters& counters = engine_.counters();
  std::string text;
  for (const CounterInfo& info : counter_table()) {
    // Base units and the _total suffix are Prometheus' conventions.
    if (info.name == "reader_wait_nanoseconds") continue;
    text += fmt::format("# HELP batchfs_{0}_total {1}\n# TYPE batchfs_{0}_total counter\nbatchfs_{0}_total {2}\n",
                        info.name, info.help, (counters.*info.value).load());
  }
  text += fmt::format(
      "# HELP batchfs_reader_wait_seconds_total Time that readers waited in open\n"
      "# TYPE batchfs_reader_wait_seconds_total counter\nbatchfs_reader_wait_seconds_total {}\n",
      static_cast<double>(counters.reader_wait_nanoseconds.load()) * 1e-9);
  auto gauge = [&text](const char* name, const char* help, std::uint64_t value) {
    text += fmt::format("# HELP batchfs_{0} {1}\n# TYPE batchfs_{0} gauge\nbatchfs_{0} {2}\n", name, help,
                        value);
  };
  gauge("memory_budget_bytes", "Memory that may be used for chunks and batches", engine_.budget().limit());
  gauge("memory_used_bytes", "Memory reserved for chunks and batches", engine_.budget().used());
  gauge("chunk_cache_bytes", "Memory of decoded chunks that are kept", engine_.cache_bytes());
  return text;
}

}  // namespace batchfs
