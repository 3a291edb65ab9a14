#include "engine/zarr/ome/collection.h"

#include "engine/zarr/node_path.h"
#include "engine/zarr/ome/axes.h"

namespace batchfs {

namespace {

/// Wells of a plate, fields of a well. The largest plates have 6144 wells.
constexpr std::size_t kMaxMembers = 1 << 16;

std::vector<std::string> paths_of(const JsonRef& list, const std::string& group, bool are_objects) {
  check_length(list, kMaxMembers);
  std::vector<std::string> paths;
  for (const JsonRef& element : list.elements())
    paths.push_back(path_below(group, are_objects ? element.at("path") : element));
  return paths;
}

}  // namespace

std::optional<OmeCollection> parse_collection(const OmeDocument& document,
                                              const std::string& group) {
  using Type = OmeCollection::Type;
  const JsonRef& members = document.members;
  if (const auto plate = members.find("plate")) {
    const auto name = plate->find("name");
    return OmeCollection{
        Type::plate, document.version,
        name && name->is_string() ? name->string().substr(0, kMaxOmeName) : std::string(),
        paths_of(plate->at("wells"), group, true)};
  }
  if (const auto well = members.find("well"))
    return OmeCollection{
        Type::well, document.version, {}, paths_of(well->at("images"), group, true)};
  if (const auto labels = members.find("labels"))
    return OmeCollection{Type::labels, document.version, {}, paths_of(*labels, group, false)};
  if (const auto series = members.find("series")) {
    // The group "OME" describes the images beside it.
    return OmeCollection{
        Type::series, document.version, {}, paths_of(*series, parent_group(group), false)};
  }
  if (members.find("bioformats2raw.layout"))
    return OmeCollection{Type::series, document.version, {}, {}};
  return std::nullopt;
}

std::uint64_t memory_of(const OmeCollection& collection) {
  std::uint64_t bytes = sizeof collection + collection.name.capacity();
  for (const std::string& path : collection.paths) bytes += sizeof path + path.capacity();
  return bytes;
}

}  // namespace batchfs
