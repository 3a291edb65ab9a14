// batchfs inspect: describes a store. Reads no values but those of coordinates.

#include <algorithm>

#include <fmt/format.h>

#include "engine/store/icechunk/icechunk_store.h"
#include "engine/zarr/revision_text.h"
#include "tools/cli/command.h"
#include "tools/cli/given_options.h"
#include "tools/cli/groups.h"
#include "tools/cli/levels.h"
#include "tools/cli/ome_text.h"
#include "tools/cli/text.h"
#include "tools/cli/value_text.h"
#include "tools/inspect/inspect_text.h"

namespace batchfs {

namespace {

struct InspectOptions {
  StoreOptions store;
  bool json = false;
  bool log = false;
  bool size = false;
};

/// The types and attributes that xarray decodes the stored values to.
Json decoded_json(const InspectedArray& entry) {
  Json json = {{"dtype", entry.type().name()}};
  if (!entry.cf) return json;
  if (entry.cf->has_scale) json["scale_factor"] = entry.cf->scale;
  if (entry.cf->has_offset) json["add_offset"] = entry.cf->offset;
  const bool is_time = entry.type().kind == Kind::datetime || entry.type().kind == Kind::timedelta;
  if (const std::string units = entry.attribute("units"); !units.empty() && !is_time)
    json["units"] = units;
  if (!entry.cf->note.empty()) json["note"] = entry.cf->note;
  return json;
}

Json value_json(const DataType& type, const std::vector<std::byte>& element) {
  std::string text;
  append_value(text, type, element.data(), TextStyle::json);
  return parse_json(text, "a coordinate");
}

Json range_json(const CoordinateRange& range) {
  Json json = {{"first", value_json(range.type, range.first)},
               {"last", value_json(range.type, range.last)}};
  if (range.step) json["step"] = *range.step;
  if (range.dates)
    json["dates"] = {{"first", range.dates->first},
                     {"last", range.dates->last},
                     {"calendar", calendar_name(range.dates->calendar)}};
  return json;
}

Json entry_json(const InspectedArray& entry) {
  const ArrayMetadata& metadata = *entry.metadata;
  Json json = Json::object();
  json["shape"] = shape_json(metadata.shape);
  json["dims"] = entry.dims;
  json["dtype"] = metadata.type.name();
  json["chunks"] = shape_json(entry.grid.chunk_shape());
  if (entry.sharded) json["shards"] = shape_json(metadata.chunk_shape);
  json["codecs"] = Json::array();
  for (const CodecSpec& codec : metadata.codecs) {
    json["codecs"].push_back({{"name", codec.name}, {"configuration", codec.configuration}});
  }
  json["fill_value"] = metadata.fill_value_json;
  json["bytes"] = entry.bytes ? Json(*entry.bytes) : Json();
  json["chunk_count"] = entry.grid.chunk_count();
  json["zarr_format"] = metadata.zarr_format;
  json["attributes"] = metadata.attributes;
  if (entry.stored) json["stored_bytes"] = *entry.stored;
  if (entry.cf || entry.range) json["decoded"] = decoded_json(entry);
  if (!entry.undecoded.empty()) json["undecoded"] = entry.undecoded;
  if (entry.range) json["range"] = range_json(*entry.range);
  if (!entry.unreadable.empty()) json["unreadable"] = entry.unreadable;
  if (!entry.unsupported.empty()) json["unsupported"] = entry.unsupported;
  if (!entry.fields.empty()) {
    json["fields"] = Json::object();
    for (const auto& [name, type] : entry.fields) append_member(json["fields"], name, type);
  }
  return json;
}

Json store_json(const OpenedStore& opened, const std::vector<InspectedArray>& entries) {
  const Hierarchy& hierarchy = *opened.hierarchy;
  Json json = Json::object();
  json["store"] = opened.store->url();
  json["zarr_format"] = hierarchy.zarr_format;
  json["consolidated"] = hierarchy.consolidated;
  json["complete"] = hierarchy.complete;
  json["snapshot"] = hierarchy.snapshot_id;
  std::uint64_t stored = 0;
  for (const InspectedArray& entry : entries) stored += entry.stored.value_or(0);
  if (!entries.empty() &&
      std::all_of(entries.begin(), entries.end(), [](const InspectedArray& e) { return e.stored; }))
    json["stored_bytes"] = stored;
  if (hierarchy.revision) json["icechunk"] = revision_json(*hierarchy.revision);
  json["groups"] = Json::object();
  for (const auto& [path, group] : hierarchy.groups) {
    if (!is_in_group(path, opened.group)) continue;
    append_member(json["groups"], path_text(path), {{"attributes", group.attributes}});
  }
  json["arrays"] = Json::object();
  for (const InspectedArray& entry : entries)
    append_member(json["arrays"], path_text(entry.metadata->path), entry_json(entry));
  if (Json ome = ome_json(hierarchy, opened.group); !ome.is_null()) json["ome"] = std::move(ome);
  json["problems"] = Json::array();
  for (const auto& [key, why] : hierarchy.problems)
    if (is_in_group(key, opened.group)) json["problems"].push_back({{"key", key}, {"why", why}});
  json["notes"] = Json::array();
  for (const auto& [key, why] : hierarchy.notes)
    if (is_in_group(key, opened.group)) json["notes"].push_back({{"key", key}, {"why", why}});
  return json;
}

/// The arrays of the group or level that the command is about.
std::vector<InspectedArray> entries_of(const OpenedStore& opened, Measure measure) {
  std::optional<std::string> level;
  if (opened.level) level = level_array(*opened.hierarchy, opened.group, *opened.level);
  std::vector<InspectedArray> entries;
  for (const auto& [path, metadata] : opened.hierarchy->arrays) {
    if (level ? path != *level : !is_in_group(path, opened.group)) continue;
    entries.push_back(inspect_array(opened, metadata));
  }
  read_ranges(entries);
  measure_stored(*opened.store, entries, measure);
  return entries;
}

/// Snapshots that --log shows.
constexpr std::size_t kMostShown = 10'000;

IcechunkLog log_of(const OpenedStore& opened) {
  std::optional<IcechunkLog> log = icechunk_log(*opened.store, kMostShown);
  if (!log)
    throw Error(ErrorCode::invalid_argument,
                "--log is for Icechunk repositories, which this is not", opened.store->url());
  return std::move(*log);
}

std::string log_json_text(const OpenedStore& opened) {
  const IcechunkLog log = log_of(opened);
  Json json = {{"store", opened.store->url()},
               {"history", Json::array()},
               {"complete", log.complete},
               {"branches", Json::object()},
               {"tags", Json::object()}};
  for (const IcechunkLog::Snapshot& snapshot : log.history)
    json["history"].push_back({{"snapshot", snapshot.id},
                               {"time", utc_text(snapshot.time)},
                               {"message", snapshot.message}});
  for (const auto& [name, id] : log.branches) append_member(json["branches"], name, id);
  for (const auto& [name, id] : log.tags) append_member(json["tags"], name, id);
  return json_text(json) + "\n";
}

std::string log_text(const OpenedStore& opened) {
  const IcechunkLog log = log_of(opened);
  Table history({"snapshot", "time", "message"});
  for (const IcechunkLog::Snapshot& snapshot : log.history)
    history.add({snapshot.id, utc_text(snapshot.time), printable(snapshot.message)});
  std::string out = printable(opened.store->url()) + "\n\n" + history.text();
  if (!log.complete) out += "and older ones\n";
  Table names({"", "name", "snapshot"});
  for (const auto& [name, id] : log.branches) names.add({"branch", printable(name), id});
  for (const auto& [name, id] : log.tags) names.add({"tag", printable(name), id});
  return out + "\n" + names.text();
}

}  // namespace

CommandAction setup_inspect(CLI::App& app) {
  const auto options = std::make_shared<InspectOptions>();
  add_store_options(app, options->store);
  add_other_stores(app, options->store);
  app.add_flag("--json", options->json, "write JSON, for programs");
  app.add_flag("--log", options->log,
               "show the history, branches and tags of an Icechunk repository");
  app.add_flag("--size", options->size,
               "show stored sizes, also of a store where that takes a request for each object");
  return [options, &app](Output& output) {
    enter_given_options(app, options->store);
    const OpenedStore opened = open_zarr(options->store);
    if (options->log) return output.write(options->json ? log_json_text(opened) : log_text(opened));
    const Measure measure = options->size ? Measure::all : Measure::quickly;
    const std::vector<InspectedArray> entries = entries_of(opened, measure);
    if (options->json) {
      Json json = store_json(opened, entries);
      for (const auto& [name, other] : opened.others)
        json["stores"][name] = store_json(*other, entries_of(*other, measure));
      return output.write(json_text(json) + "\n");
    }
    output.write(inspect_text(opened, entries, text_layout(output.fd())));
    for (const auto& [name, other] : opened.others)
      output.write(
          fmt::format("\n{}:\n{}", name,
                      inspect_text(*other, entries_of(*other, measure), text_layout(output.fd()))));
  };
}

}  // namespace batchfs
