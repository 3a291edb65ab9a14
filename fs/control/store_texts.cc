#include "fs/control/store_texts.h"

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/json_text.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "engine/zarr/codecs_text.h"
#include "engine/zarr/revision_text.h"

namespace batchfs {

namespace {

std::string dims_text(const Dims& dims) {
  std::string text;
  for (std::int64_t n : dims) text += (text.empty() ? "" : ", ") + std::to_string(n);
  return "(" + text + ")";
}

/// Decoded; nullopt for values of any length.
std::optional<std::uint64_t> array_bytes(const ArrayMetadata& array) {
  if (array.type.is_variable()) return std::nullopt;
  return static_cast<std::uint64_t>(element_count(array.shape)) * array.type.itemsize;
}

std::string size_text(const ArrayMetadata& array) {
  const auto bytes = array_bytes(array);
  return bytes ? format_size(*bytes) : "varies";
}

/// Decoded bytes of all arrays, as far as they are known.
std::uint64_t total_bytes(const StoreContents& contents) {
  std::uint64_t total = 0;
  for (const ArrayEntry& entry : contents.arrays)
    if (const auto bytes = array_bytes(*entry.metadata); bytes && *bytes <= INT64_MAX - total)
      total += *bytes;
  return total;
}

}  // namespace

std::string array_summary(const ArrayEntry& entry) {
  const ArrayMetadata& array = *entry.metadata;
  std::vector<std::string> dims = dimension_names(array);
  std::string text = fmt::format("{}: {} {}\n", array.path.empty() ? "/" : printable(array.path),
                                 printable(array.type.name()), dims_text(array.shape));
  text += fmt::format("  dimensions  {}\n", dims.empty() ? "none" : printable(join(dims, ", ")));
  text += fmt::format("  chunks      {}", dims_text(entry.array ? entry.array->grid().chunk_shape()
                                                                : array.chunk_shape));
  if (entry.array && entry.array->is_sharded())
    text += fmt::format(" in shards {}", dims_text(array.chunk_shape));
  text += fmt::format("\n  codecs      {}\n  size        {}\n", codecs_text(array.codecs),
                      size_text(array));
  for (const auto& [name, value] : array.attributes.items())
    if (name == "units" || name == "long_name" || name == "standard_name")
      text += fmt::format(
          "  {:<11} {}\n", name,
          printable(value.is_string() ? value.get<std::string>() : json_text(value, -1)));
  if (!entry.unsupported.empty())
    text += fmt::format("  not readable: {}\n", printable(entry.unsupported));
  return text;
}

std::string store_summary(const StoreContents& contents) {
  std::string text = fmt::format(
      "{}\nZarr format {}, {}, {}, {} decoded\n", printable(contents.url),
      contents.hierarchy.zarr_format, counted(std::ssize(contents.hierarchy.arrays), "array"),
      counted(std::ssize(contents.hierarchy.groups), "group"), format_size(total_bytes(contents)));
  if (contents.hierarchy.revision)
    text += fmt::format("Icechunk {}\n", revision_text(*contents.hierarchy.revision));
  if (!contents.dataset.dims().empty()) {
    text += "\nDimensions\n";
    for (const auto& [name, size] : contents.dataset.dims())
      text += fmt::format("  {:<24} {}\n", printable(name),
                          format_count(static_cast<std::uint64_t>(size)));
  }
  for (const bool coordinates : {true, false}) {
    bool first = true;
    for (const Variable& variable : contents.dataset.variables()) {
      if (variable.is_coordinate != coordinates) continue;
      if (first) text += coordinates ? "\nCoordinates\n" : "\nVariables\n";
      first = false;
      text += fmt::format(
          "  {:<24} {:<16} ({}) {}{}\n", printable(variable.name),
          printable(variable.cf.decoded.name()), printable(join(variable.dims, ", ")),
          size_text(*variable.metadata),
          variable.unsupported.empty() ? "" : "  not readable: " + printable(variable.unsupported));
    }
  }
  if (!contents.views.empty()) text += "\nViews\n";
  for (const auto& view : contents.views) {
    text += fmt::format("  views/{}: {} in {} of {}\n", printable(view->name()),
                        counted(view->samples(), "sample"),
                        counted(view->batches(), "batch", "batches"), view->batch_size());
    for (const TensorSpec& tensor : view->tensors())
      text += fmt::format("    {:<22} {:<16} ({}) {}\n", printable(tensor.name), tensor.type.name(),
                          printable(join(tensor.dims, ", ")), dims_text(tensor.shape));
  }
  if (contents.views.empty())
    text +=
        "\nNo views: write one with `batchfs view STORE > view.json`, mount with `--view "
        "view.json`.\n";
  return text;
}

std::string store_json(const StoreContents& contents) {
  Json arrays = Json::object();
  for (const ArrayEntry& entry : contents.arrays) {
    const ArrayMetadata& array = *entry.metadata;
    Json json = {{"shape", std::vector<std::int64_t>(array.shape.begin(), array.shape.end())},
                 {"dims", dimension_names(array)},
                 {"dtype", array.type.name()},
                 {"bytes", Json()}};
    if (const auto bytes = array_bytes(array)) json["bytes"] = *bytes;
    if (!entry.unsupported.empty()) json["unsupported"] = entry.unsupported;
    arrays[array.path.empty() ? "/" : array.path] = std::move(json);
  }
  Json views = Json::array();
  for (const auto& view : contents.views) views.push_back(view->name());
  Json json = {{"url", contents.url}, {"snapshot", contents.hierarchy.snapshot_id}};
  if (contents.hierarchy.revision) json["icechunk"] = revision_json(*contents.hierarchy.revision);
  json["zarr_format"] = contents.hierarchy.zarr_format;
  json["consolidated"] = contents.hierarchy.consolidated;
  json["arrays"] = std::move(arrays);
  json["views"] = std::move(views);
  return json_text(json) + "\n";
}

}  // namespace batchfs
