// batchfs inspect: describes a store. Metadata only; no chunk is read.

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "engine/array/array.h"
#include "engine/array/string_array.h"
#include "engine/base/counted.h"
#include "engine/base/strings.h"
#include "engine/dataset/dataset.h"
#include "engine/dataset/fields.h"
#include "engine/store/icechunk/icechunk_store.h"
#include "engine/view/view.h"
#include "engine/zarr/codecs_text.h"
#include "engine/zarr/revision_text.h"
#include "tools/cli/command.h"
#include "tools/cli/groups.h"
#include "tools/cli/levels.h"
#include "tools/cli/named_arrays.h"
#include "tools/cli/ome_text.h"
#include "tools/cli/store_options.h"
#include "tools/cli/text.h"

namespace batchfs {

namespace {

struct InspectOptions {
  StoreOptions store;
  bool json = false;
  bool log = false;
};

/// An array as it can be read: its chunks, and why it cannot be.
struct InspectedArray {
  const ArrayMetadata* metadata;
  std::vector<std::string> dims;
  ChunkGrid grid;  // chunks that can be read alone: in shards, the inner chunks
  bool sharded = false;
  std::optional<std::uint64_t> bytes;  // decoded; nothing for variable lengths
  std::string unsupported;
  std::vector<std::pair<std::string, std::string>> fields;  // variables and their types
};

InspectedArray examine(const OpenedStore& opened, const ArrayMetadata& metadata) {
  InspectedArray entry{&metadata, {}, {}, false, std::nullopt, metadata.unsupported, {}};
  try {
    entry.dims = dimension_names(metadata);
    entry.grid = ChunkGrid(metadata.shape, metadata.chunk_shape);
    if (!metadata.type.is_variable()) {
      Dims all = metadata.shape;
      all.push_back(metadata.type.itemsize);
      entry.bytes = static_cast<std::uint64_t>(element_count(all));
    }
    if (entry.unsupported.empty() && metadata.type.is_variable()) {
      StringArray(opened.store, std::make_shared<const ArrayMetadata>(metadata));
    } else if (entry.unsupported.empty()) {
      const Array array(opened.store, std::make_shared<const ArrayMetadata>(metadata));
      entry.grid = array.grid();
      entry.sharded = array.is_sharded();
    }
  } catch (const Error& error) {
    entry.unsupported = error.why();
  }
  const std::string& path = metadata.path;
  const std::string name = path.empty() ? "values" : path.substr(path.rfind('/') + 1);
  if (entry.unsupported.empty())
    for (const auto& [ending, field] : field_variables(metadata))
      entry.fields.emplace_back(name + ending, field.type.name());
  return entry;
}

std::string path_text(const std::string& path) { return path.empty() ? "/" : path; }

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
  if (!entry.unsupported.empty()) json["unsupported"] = entry.unsupported;
  if (!entry.fields.empty()) {
    json["fields"] = Json::object();
    for (const auto& [name, type] : entry.fields) append_member(json["fields"], name, type);
  }
  return json;
}

std::string store_json_text(const OpenedStore& opened, const std::vector<InspectedArray>& entries) {
  const Hierarchy& hierarchy = *opened.hierarchy;
  Json json = Json::object();
  json["store"] = opened.store->url();
  json["zarr_format"] = hierarchy.zarr_format;
  json["consolidated"] = hierarchy.consolidated;
  json["complete"] = hierarchy.complete;
  json["snapshot"] = hierarchy.snapshot_id;
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
  return json_text(json) + "\n";
}

std::string chunk_size_text(const InspectedArray& entry) {
  if (entry.metadata->type.is_variable()) return "varies";
  Dims all = entry.grid.chunk_shape();
  all.push_back(entry.metadata->type.itemsize);
  return format_size(static_cast<std::uint64_t>(element_count(all)));
}

std::string type_text(const DataType& type) {
  if (type.kind != Kind::structured) return printable(type.name());
  return "struct of " + std::to_string(type.fields.size());
}

/// The arrays of one group, as a table.
std::string group_text(const std::vector<const InspectedArray*>& entries) {
  Table table({"array", "type", "dimensions", "shape", "chunks", "chunk size", "chunks in all",
               "codecs", "size"});
  for (const InspectedArray* entry : entries) {
    const ArrayMetadata& metadata = *entry->metadata;
    const std::string& path = metadata.path;
    const bool readable = entry->grid.chunk_shape().size() == metadata.shape.size();
    table.add({path.empty() ? "/" : printable(path.substr(path.rfind('/') + 1)),
               type_text(metadata.type), printable(join(entry->dims, ", ")),
               shape_text(metadata.shape), readable ? shape_text(entry->grid.chunk_shape()) : "?",
               readable ? chunk_size_text(*entry) : "?",
               readable ? format_count(static_cast<std::uint64_t>(entry->grid.chunk_count())) : "?",
               codecs_text(metadata.codecs), entry->bytes ? format_size(*entry->bytes) : "varies"});
  }
  return table.text();
}

/// Can views be made of the group?
bool has_views(const OpenedStore& opened, const std::string& group) {
  if (opened.hierarchy->ome.images.contains(group)) return true;
  try {
    const Dataset dataset(opened.store, *opened.hierarchy, group);
    return std::any_of(
        dataset.variables().begin(), dataset.variables().end(), [](const Variable& variable) {
          return !variable.is_coordinate && !variable.dims.empty() && fits_tensor(variable);
        });
  } catch (const Error&) {  // its dimensions do not fit together
    return false;
  }
}

/// An argument as a shell takes it.
std::string shell_word(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_./-+=:@,").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

/// Commands to try next, for each group: a view is of one.
std::string next_text(const OpenedStore& opened, const std::vector<InspectedArray>& entries) {
  constexpr std::size_t kMost = 5;  // groups that are named
  std::vector<std::string> groups{opened.group};
  for (const InspectedArray& entry : entries)
    if (const std::string group = parent_group(entry.metadata->path);
        std::find(groups.begin(), groups.end(), group) == groups.end())
      groups.push_back(group);
  std::string out;
  std::size_t named = 0;
  for (const std::string& group : groups) {
    if (!has_views(opened, group)) continue;
    if (++named > kMost) return out + "  or another group\n";
    out += named == 1 ? "\nNext: " : "  or: ";
    out += "batchfs view " +
           (group.empty() ? "" : "--group " + printable(shell_word(group)) + " ") +
           printable(opened.store->url()) + " > view.json\n";
  }
  return out;
}

/// Groups of a collection of images that are shown: a plate has thousands.
constexpr std::int64_t kMaxGroups = 4;

std::string summary_text(const OpenedStore& opened, const std::vector<InspectedArray>& entries) {
  const Hierarchy& hierarchy = *opened.hierarchy;
  std::uint64_t bytes = 0;
  std::map<std::string, std::vector<const InspectedArray*>> by_group;
  for (const InspectedArray& entry : entries) {
    by_group[parent_group(entry.metadata->path)].push_back(&entry);
    if (entry.bytes && *entry.bytes <= INT64_MAX - bytes) bytes += *entry.bytes;
  }
  std::string out = printable(opened.store->url()) + "\n";
  out += "Zarr v" + std::to_string(hierarchy.zarr_format) + ", " +
         counted(std::count_if(hierarchy.groups.begin(), hierarchy.groups.end(),
                               [&](const auto& g) { return is_in_group(g.first, opened.group); }),
                 "group") +
         ", " + counted(std::ssize(entries), "array") + ", " + format_size(bytes) + " decoded" +
         (hierarchy.consolidated ? ", consolidated metadata" : "") + "\n";
  if (hierarchy.revision) out += "Icechunk " + revision_text(*hierarchy.revision) + "\n";
  if (const std::string advice = naming_advice(hierarchy); !advice.empty())
    out += "This is what is known: " + advice + "\n";
  out += collections_text(hierarchy, opened.group);
  std::int64_t shown = 0;
  for (const auto& [group, members] : by_group) {
    if (shown++ == kMaxGroups && !hierarchy.ome.collections.empty()) {
      out += fmt::format("\nand {}; --group PATH shows one\n",
                         counted(std::ssize(by_group) - kMaxGroups, "more group"));
      break;
    }
    out += "\n" + printable(path_text(group)) + "\n" + image_text(hierarchy, group) +
           group_text(members);
  }
  std::string of_fields;
  for (const InspectedArray& entry : entries) {
    std::vector<std::string> names;
    for (const auto& [name, type] : entry.fields) names.push_back(name + " (" + type + ")");
    if (!names.empty())
      of_fields +=
          "  " + printable(path_text(entry.metadata->path) + ": " + join(names, ", ")) + "\n";
  }
  if (!of_fields.empty()) out += "\nFields, each a variable of its own:\n" + of_fields;
  std::string trouble;
  for (const InspectedArray& entry : entries) {
    if (!entry.unsupported.empty()) {
      trouble +=
          "  " + printable(path_text(entry.metadata->path) + ": " + entry.unsupported) + "\n";
    }
  }
  for (const auto& [key, why] : hierarchy.problems)
    if (is_in_group(key, opened.group)) trouble += "  " + printable(key + ": " + why) + "\n";
  trouble += ome_problems_text(hierarchy, opened.group);
  if (!trouble.empty()) out += "\nCannot be read:\n" + trouble;
  return out + next_text(opened, entries);
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
  app.add_flag("--json", options->json, "write JSON, for programs");
  app.add_flag("--log", options->log,
               "show the history, branches and tags of an Icechunk repository");
  return [options](Output& output) {
    const OpenedStore opened = open_zarr(options->store);
    if (options->log) return output.write(options->json ? log_json_text(opened) : log_text(opened));
    std::optional<std::string> level;
    if (opened.level) level = level_array(*opened.hierarchy, opened.group, *opened.level);
    std::vector<InspectedArray> entries;
    for (const auto& [path, metadata] : opened.hierarchy->arrays) {
      if (level ? path != *level : !is_in_group(path, opened.group)) continue;
      entries.push_back(examine(opened, metadata));
    }
    output.write(options->json ? store_json_text(opened, entries) : summary_text(opened, entries));
  };
}

}  // namespace batchfs
