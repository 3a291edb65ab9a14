#include "engine/zarr/ome/document.h"

#include <cctype>

#include <fmt/format.h>

#include "engine/base/printable.h"
#include "engine/base/strings.h"

namespace batchfs {

namespace {

bool has_kind(const Json& members) {
  for (const char* kind :
       {"multiscales", "plate", "well", "labels", "series", "bioformats2raw.layout"})
    if (members.contains(kind)) return true;
  return false;
}

/// Like has_kind(), for attributes that need not be OME-Zarr's.
bool has_kind_outside(const Json& attributes, std::string_view group) {
  const auto is_named = [group](std::string_view name) {
    return group == name || (group.ends_with(name) && group[group.size() - name.size() - 1] == '/');
  };
  // Pyramids of maps (ndpyramid) have a list, too, without a version and axes.
  const auto is_list_of_images = [&] {
    const auto found = attributes.find("multiscales");
    if (found == attributes.end() || !found->is_array() || found->empty()) return false;
    const Json& first = (*found)[0];
    return first.is_object() && (first.contains("version") || first.contains("axes"));
  };
  const auto has = [&](const char* key, Json::value_t type) {
    const auto found = attributes.find(key);
    return found != attributes.end() && found->type() == type;
  };
  return is_list_of_images() || has("plate", Json::value_t::object) ||
         has("well", Json::value_t::object) || attributes.contains("bioformats2raw.layout") ||
         (has("labels", Json::value_t::array) && is_named("labels")) ||
         (has("series", Json::value_t::array) && is_named("OME"));
}

/// Up to version 0.4 the version is a member of the object that it applies to.
std::optional<JsonRef> version_inside(const JsonRef& members) {
  for (const char* kind : {"multiscales", "plate", "well"}) {
    const auto found = members.find(kind);
    if (!found) continue;
    if (found->is_object()) return found->find("version");
    if (!found->is_array() || found->value().empty() || !found->value()[0].is_object()) continue;
    return JsonRef(found->value()[0], found->path() + "[0]").find("version");
  }
  return std::nullopt;
}

/// Writers leave it out.
std::string likely_version(const JsonRef& members, bool is_inside) {
  if (!is_inside) return "0.4";
  const auto multiscales = members.find("multiscales");
  const bool has_systems = multiscales && multiscales->is_array() &&
                           !multiscales->value().empty() && multiscales->value()[0].is_object() &&
                           multiscales->value()[0].contains("coordinateSystems");
  return has_systems ? "0.6" : "0.5";
}

std::string known_version(const JsonRef& json) {
  const std::string text = json.string();
  const bool is_known =
      text.size() >= 3 && text.starts_with("0.") && text[2] >= '1' && text[2] <= '6' &&
      (text.size() == 3 || std::isdigit(static_cast<unsigned char>(text[3])) == 0);
  if (!is_known)
    throw json.error(fmt::format("OME-Zarr '{}' is not supported; versions 0.1 to 0.6 are",
                                 printable(text.substr(0, 64))),
                     ErrorCode::not_supported);
  return text.substr(0, 3);
}

}  // namespace

std::optional<OmeDocument> find_ome(const Json& attributes, const std::string& group) {
  if (!attributes.is_object()) return std::nullopt;
  const JsonRef root(attributes, "");
  const auto inside = root.find("ome");
  const bool is_inside = inside && inside->is_object() && has_kind(inside->value());
  if (!is_inside && !has_kind_outside(attributes, group)) return std::nullopt;
  const JsonRef members = is_inside ? *inside : root;
  std::optional<JsonRef> version = is_inside ? members.find("version") : std::nullopt;
  if (!version) version = version_inside(members);
  return OmeDocument{version ? known_version(*version) : likely_version(members, is_inside),
                     members};
}

std::string path_below(const std::string& group, const JsonRef& relative) {
  constexpr std::size_t kMaxShown = 200;
  const std::string text = relative.string();
  std::string path = group;
  const auto refuse = [&] {
    return relative.error(fmt::format("'{}' is not the path of a node in this group",
                                      printable(text.substr(0, kMaxShown))));
  };
  if (text.size() > kMaxNodePath) throw refuse();
  const std::vector<std::string> parts = split(text, '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty() && i > 0 && i + 1 == parts.size()) continue;  // "0/"
    if (!is_file_name(parts[i])) throw refuse();
    if (!path.empty()) path += '/';
    path += parts[i];
  }
  if (path.size() > kMaxNodePath)
    throw relative.error(fmt::format("the path has more than {} bytes", kMaxNodePath),
                         ErrorCode::not_supported);
  return path;
}

void check_length(const JsonRef& list, std::size_t most) {
  if (!list.is_array()) throw list.error("expected a list");
  if (list.value().size() > most)
    throw list.error(
        fmt::format("{} elements; at most {} are supported", list.value().size(), most),
        ErrorCode::not_supported);
}

}  // namespace batchfs
