#include "tools/cli/ome_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "tools/cli/groups.h"
#include "tools/cli/text.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxMembers = 8;      // of a collection that are named
constexpr std::size_t kMaxCollections = 4;  // that are described
constexpr std::size_t kMaxNotes = 4;

std::string shown(const std::string& path) { return path.empty() ? "/" : printable(path); }

std::string kind_text(OmeCollection::Type kind) {
  switch (kind) {
    case OmeCollection::Type::plate:
      return "plate";
    case OmeCollection::Type::well:
      return "well";
    case OmeCollection::Type::labels:
      return "labels";
    case OmeCollection::Type::series:
      return "series";
  }
  return "";
}

std::string members_text(const OmeCollection& collection) {
  const auto count = std::ssize(collection.paths);
  switch (collection.type) {
    case OmeCollection::Type::plate:
      return counted(count, "well");
    case OmeCollection::Type::well:
      return counted(count, "field");
    case OmeCollection::Type::labels:
      return counted(count, "label image");
    case OmeCollection::Type::series:
      return counted(count, "image");
  }
  return "";
}

std::string first_names(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    if (names.size() == kMaxMembers) {
      names.emplace_back("...");
      break;
    }
    names.push_back(shown(path));
  }
  return join(names, ", ");
}

/// "z 0.5, y 0.36, x 0.36 micrometer": units that are the same are said once.
std::string distances_text(const std::vector<ArrayAxis>& axes) {
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (!axes[d].has_values) continue;
    std::string part = fmt::format("{} {}", axes[d].name, axes[d].scale);
    const bool is_last_of_unit =
        d + 1 == axes.size() || !axes[d + 1].has_values || axes[d + 1].unit != axes[d].unit;
    if (is_last_of_unit && !axes[d].unit.empty()) part += " " + axes[d].unit;
    parts.push_back(std::move(part));
  }
  return join(parts, ", ");
}

Json axis_json(const ArrayAxis& axis) {
  constexpr const char* kTypes[] = {"other", "space", "time", "channel"};
  Json json = {{"name", axis.name}, {"type", kTypes[static_cast<int>(axis.type)]}};
  if (!axis.unit.empty()) json["unit"] = axis.unit;
  if (axis.has_values) {
    json["scale"] = axis.scale;
    json["translation"] = axis.translation;
  }
  if (axis.labels != nullptr) json["labels"] = *axis.labels;
  return json;
}

Json image_json(const OmeImage& image) {
  Json json = {{"version", image.version}};
  if (!image.name.empty()) json["name"] = image.name;
  json["levels"] = Json::array();
  for (const OmeImage::Level& level : image.levels) {
    Json axes = Json::array();
    for (const ArrayAxis& axis : level.axes) axes.push_back(axis_json(axis));
    json["levels"].push_back({{"array", level.path}, {"axes", std::move(axes)}});
  }
  if (!image.labels.empty()) json["labels"] = image.labels;
  json["is_label"] = image.is_label;
  json["notes"] = image.notes;
  return json;
}

}  // namespace

std::string image_text(const Hierarchy& hierarchy, const std::string& group) {
  const auto found = hierarchy.ome.images.find(group);
  if (found == hierarchy.ome.images.end()) return {};
  const OmeImage& image = found->second;
  std::string out =
      fmt::format("  OME-Zarr {} {}, {}", image.version, image.is_label ? "label image" : "image",
                  counted(std::ssize(image.levels), "level"));
  const std::string distances = printable(distances_text(image.levels.front().axes));
  if (!distances.empty()) out += ", pixels at " + distances;
  if (!image.name.empty()) out += fmt::format(", '{}'", printable(image.name));
  out += "\n";
  if (!image.labels.empty()) out += fmt::format("  labels: {}\n", first_names(image.labels));
  for (std::size_t n = 0; n < std::min(image.notes.size(), kMaxNotes); ++n)
    out += "  note: " + printable(image.notes[n]) + "\n";
  Table table({"level", "array", "shape", "pixels at"});
  for (std::size_t k = 0; k < image.levels.size(); ++k) {
    const OmeImage::Level& level = image.levels[k];
    const auto array = hierarchy.arrays.find(level.path);
    table.add({std::to_string(k),
               printable(group.empty() ? level.path : level.path.substr(group.size() + 1)),
               array == hierarchy.arrays.end() ? "?" : shape_text(array->second.shape),
               printable(distances_text(level.axes))});
  }
  return out + table.text();
}

std::string collections_text(const Hierarchy& hierarchy, const std::string& group) {
  std::string out;
  std::size_t described = 0;
  for (const auto& [path, collection] : hierarchy.ome.collections) {
    if (!is_in_group(path, group) || collection.type == OmeCollection::Type::labels ||
        (collection.type == OmeCollection::Type::series && path.ends_with("OME")))
      continue;
    if (described++ == kMaxCollections) {
      out += "...\n";
      break;
    }
    out += fmt::format("{}: OME-Zarr {} {}{}, {}", shown(path), collection.version,
                       kind_text(collection.type),
                       collection.name.empty() ? "" : fmt::format(" '{}'", collection.name),
                       members_text(collection));
    out += collection.paths.empty() ? "\n" : ": " + first_names(collection.paths) + "\n";
  }
  return out.empty() ? out : "\n" + printable(out, LineBreaks::keep);
}

std::string ome_problems_text(const Hierarchy& hierarchy, const std::string& group) {
  std::string out;
  for (const auto& [path, why] : hierarchy.ome.problems)
    if (is_in_group(path, group))
      out += fmt::format("  {}: OME-Zarr metadata: {}\n", shown(path), printable(why));
  return out;
}

Json ome_json(const Hierarchy& hierarchy, const std::string& group) {
  Json images = Json::object(), collections = Json::object(), problems = Json::array();
  const auto key = [](const std::string& path) { return path.empty() ? "/" : path; };
  for (const auto& [path, image] : hierarchy.ome.images)
    if (is_in_group(path, group)) append_member(images, key(path), image_json(image));
  for (const auto& [path, collection] : hierarchy.ome.collections) {
    if (!is_in_group(path, group)) continue;
    Json json = {{"kind", kind_text(collection.type)}, {"version", collection.version}};
    if (!collection.name.empty()) json["name"] = collection.name;
    json["paths"] = collection.paths;
    append_member(collections, key(path), std::move(json));
  }
  for (const auto& [path, why] : hierarchy.ome.problems)
    if (is_in_group(path, group)) problems.push_back({{"group", key(path)}, {"why", why}});
  if (images.empty() && collections.empty() && problems.empty()) return nullptr;
  return {{"images", std::move(images)},
          {"collections", std::move(collections)},
          {"problems", std::move(problems)}};
}

}  // namespace batchfs
