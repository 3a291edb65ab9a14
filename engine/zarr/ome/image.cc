#include "engine/zarr/ome/image.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/zarr/ome/transformation.h"

namespace batchfs {

namespace {

/// Each halves a resolution: 64 are enough for any array.
constexpr std::size_t kMaxLevels = 64;
/// Images in one group. The specification allows several, and all but the first are rare.
constexpr std::size_t kMaxImages = 1000;
constexpr std::size_t kMaxChannels = 1 << 16;
constexpr std::size_t kMaxSystems = 1000;

std::string optional_name(const JsonRef& image) {
  const auto name = image.find("name");
  return name && name->is_string() ? name->string().substr(0, kMaxOmeName) : std::string();
}

/// A coordinate system of version 0.6, as a transformation refers to it: by its name, or as an
/// object with the name. nullopt: by none.
std::optional<std::string> referred_name(const JsonRef& transformation, std::string_view key) {
  const auto found = transformation.find(key);
  if (!found) return std::nullopt;
  return found->is_object() ? found->at("name").string() : found->string();
}

/// Version 0.6: the transformation of a level, which must be one.
JsonRef only_transformation(const JsonRef& dataset) {
  const JsonRef list = dataset.at("coordinateTransformations");
  check_length(list, 1);
  if (list.value().empty()) throw list.error("the list is empty");
  return list.elements().front();
}

/// Version 0.6: the axes of the coordinate system that the levels are in.
std::vector<ArrayAxis> axes_of_system(const JsonRef& image, const std::vector<JsonRef>& datasets) {
  const JsonRef systems = image.at("coordinateSystems");
  check_length(systems, kMaxSystems);
  std::optional<std::string> wanted;
  for (const JsonRef& dataset : datasets) {
    const JsonRef transformation = only_transformation(dataset);
    const auto name = referred_name(transformation, "output");
    if (!name) continue;
    if (wanted && *wanted != *name)
      throw transformation.at("output").error(
          "the levels are in several coordinate systems, which is not supported",
          ErrorCode::not_supported);
    wanted = name;
  }
  if (systems.value().empty()) throw systems.error("the list is empty");
  if (!wanted && systems.value().size() > 1)
    throw systems.error("there are several, and the levels name none as their \"output\"");
  for (const JsonRef& system : systems.elements())
    if (!wanted || system.at("name").string() == *wanted) return parse_axes(system.at("axes"));
  throw systems.error("the coordinate system of the levels is not among them");
}

/// Labels of channels; null where there are none, or they cannot be used.
std::shared_ptr<const std::vector<std::string>> channel_labels(const JsonRef& members,
                                                               std::vector<std::string>& notes) {
  const auto omero = members.find("omero");
  if (!omero) return nullptr;
  try {
    const auto channels = omero->find("channels");
    if (!channels) return nullptr;
    check_length(*channels, kMaxChannels);
    auto labels = std::make_shared<std::vector<std::string>>();
    for (const JsonRef& channel : channels->elements()) {
      const auto label = channel.find("label");
      if (!label || label->is_null()) return nullptr;
      labels->push_back(label->string());
      if (labels->back().size() > kMaxOmeName)
        throw label->error(fmt::format("more than {} bytes", kMaxOmeName));
    }
    if (labels->empty()) return nullptr;
    std::vector<std::string> sorted = *labels;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
      throw channels->error(fmt::format("two channels have the label '{}'", *twice));
    return labels;
  } catch (const Error& error) {
    notes.push_back("channels have no labels: " + error.why());
    return nullptr;
  }
}

/// The axes of one level, with their coordinates.
std::vector<ArrayAxis> level_axes(const OmeDocument& document, const JsonRef& image,
                                  const JsonRef& dataset, std::vector<ArrayAxis> axes,
                                  std::vector<std::string>& notes) {
  if (document.is_before("0.4")) return axes;  // they are names
  AxisTransformation found(axes.size());
  if (!document.is_before("0.6")) {
    apply_transformation(only_transformation(dataset), found);
  } else {
    const auto own = dataset.find("coordinateTransformations");
    if (!own) {
      found.unknown = dataset.error("the key 'coordinateTransformations' is missing").why();
    } else {
      apply_transformations(*own, found);
    }
    if (const auto of_all = image.find("coordinateTransformations"))
      apply_transformations(*of_all, found);
  }
  constexpr std::string_view kNoCoordinates = "no coordinates: ";
  const bool is_noted = !notes.empty() && notes.back().starts_with(kNoCoordinates);
  if (!found.unknown.empty() && !is_noted)
    notes.push_back(std::string(kNoCoordinates) + found.unknown);
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].type != ArrayAxis::Type::space && axes[d].type != ArrayAxis::Type::time) continue;
    axes[d].has_values = found.unknown.empty();
    if (!axes[d].has_values) continue;
    axes[d].scale = found.scale[d];
    axes[d].translation = found.translation[d];
  }
  return axes;
}

}  // namespace

OmeImage parse_image(const OmeDocument& document, const std::string& group) {
  OmeImage result;
  result.version = document.version;
  const JsonRef images = document.members.at("multiscales");
  check_length(images, kMaxImages);
  if (images.value().empty()) throw images.error("the list is empty");
  const JsonRef image = images.elements().front();
  result.name = optional_name(image);
  result.is_label = document.members.value().contains("image-label");
  if (images.value().size() > 1)
    result.notes.push_back(fmt::format("the group has {}; the first one is used",
                                       counted(std::ssize(images.value()), "image")));
  const JsonRef list = image.at("datasets");
  check_length(list, kMaxLevels);
  const std::vector<JsonRef> datasets = list.elements();
  if (datasets.empty()) throw list.error("the list is empty");
  std::vector<ArrayAxis> axes;
  if (!document.is_before("0.6"))
    axes = axes_of_system(image, datasets);
  else if (document.is_before("0.3") && !image.find("axes"))
    axes = five_axes();
  else
    axes = parse_axes(image.at("axes"));
  const auto labels = channel_labels(document.members, result.notes);
  for (ArrayAxis& axis : axes)
    if (axis.type == ArrayAxis::Type::channel) axis.labels = labels;
  for (const JsonRef& dataset : datasets)
    result.levels.push_back({path_below(group, dataset.at("path")),
                             level_axes(document, image, dataset, axes, result.notes)});
  if (!document.is_before("0.6"))
    if (const auto others = image.find("coordinateTransformations");
        others && others->is_array() && !others->value().empty())
      result.notes.push_back(
          others->error("left out; coordinates are those of the levels' own coordinate system")
              .why());
  return result;
}

std::uint64_t memory_of(const OmeImage& image) {
  std::uint64_t bytes = sizeof image + image.name.capacity();
  for (const OmeImage::Level& level : image.levels) {
    bytes += sizeof level + level.path.capacity();
    for (const ArrayAxis& axis : level.axes)
      bytes += sizeof axis + axis.name.capacity() + axis.unit.capacity();
  }
  for (const auto* texts : {&image.labels, &image.notes})
    for (const std::string& text : *texts) bytes += sizeof text + text.capacity();
  for (const ArrayAxis& axis : image.levels.front().axes)
    if (axis.labels != nullptr)
      for (const std::string& label : *axis.labels) bytes += sizeof label + label.capacity();
  return bytes;
}

}  // namespace batchfs
