#include "engine/zarr/ome/read_ome.h"

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/zarr/node_path.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxNumbered = 1 << 16;

/// The arrays of an image get its axes. Throws before any of them has them.
void name_axes(Hierarchy& hierarchy, OmeImage& image) {
  for (std::size_t k = 0; k < image.levels.size(); ++k) {
    OmeImage::Level& level = image.levels[k];
    const auto array = hierarchy.arrays.find(level.path);
    if (array == hierarchy.arrays.end()) {
      if (hierarchy.complete)
        image.notes.push_back(fmt::format("there is no array '{}'", level.path));
      continue;
    }
    const Dims& shape = array->second.shape;
    if (shape.size() != level.axes.size())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("multiscales[0].datasets[{}].path: the array '{}' has {}, the image "
                              "{}",
                              k, level.path, counted(std::ssize(shape), "dimension"),
                              counted(std::ssize(level.axes), "axis", "axes")));
    for (std::size_t d = 0; d < shape.size(); ++d) {
      ArrayAxis& axis = level.axes[d];
      if (axis.labels == nullptr || std::ssize(*axis.labels) == shape[d]) continue;
      if (k == 0)
        image.notes.push_back(fmt::format("channels have no labels: {} for {}",
                                          counted(std::ssize(*axis.labels), "label"),
                                          counted(shape[d], "channel")));
      axis.labels = nullptr;
    }
  }
  for (const OmeImage::Level& level : image.levels)
    if (const auto array = hierarchy.arrays.find(level.path); array != hierarchy.arrays.end())
      array->second.axes = level.axes;
}

/// bioformats2raw: the images that the group "OME" names, else the numbered groups.
std::vector<std::string> series_of(const Hierarchy& hierarchy, const std::string& group) {
  const auto named = hierarchy.ome.collections.find(join_path(group, "OME"));
  if (named != hierarchy.ome.collections.end() && !named->second.paths.empty())
    return named->second.paths;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < kMaxNumbered; ++i) {
    std::string path = join_path(group, std::to_string(i));
    if (!hierarchy.groups.contains(path)) break;
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace

void read_ome(Hierarchy& hierarchy, MetadataMemory& memory) {
  OmeMetadata& ome = hierarchy.ome;
  ome = {};
  for (const auto& [path, group] : hierarchy.groups) {
    try {
      const auto document = find_ome(group.attributes, path);
      if (!document) continue;
      if (document->members.value().contains("multiscales")) {
        OmeImage image = parse_image(*document, path);
        memory.claim(memory_of(image));
        name_axes(hierarchy, image);
        ome.images.emplace(path, std::move(image));
      } else if (auto collection = parse_collection(*document, path)) {
        memory.claim(memory_of(*collection));
        ome.collections.emplace(path, std::move(*collection));
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::no_memory) throw;
      std::string why = short_reason(error.why());
      memory.claim(path.size() + why.size() + 2 * sizeof why);
      ome.problems.emplace_back(path, std::move(why));
    }
  }
  for (auto& [path, collection] : ome.collections)
    if (collection.type == OmeCollection::Type::series && collection.paths.empty())
      collection.paths = series_of(hierarchy, path);
  for (auto& [path, image] : ome.images)
    if (const auto labels = ome.collections.find(join_path(path, "labels"));
        labels != ome.collections.end() && labels->second.type == OmeCollection::Type::labels)
      image.labels = labels->second.paths;
}

}  // namespace batchfs
