#include "tools/show/colour_sets.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "engine/zarr/node_path.h"
#include "fs/formats/colour_bands.h"
#include "fs/formats/picture_axes.h"

namespace batchfs {

namespace {

constexpr std::array<std::array<double, 3>, 3> kPrimary = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
constexpr std::array<const char*, 3> kPrimaryNames = {"red", "green", "blue"};
constexpr std::size_t kMaxColourParts = 8;  // of one picture

bool is_shown(const InspectedArray& array) {
  return !array.is_coordinate() && array.unsupported.empty() && array.fields.empty() &&
         array.metadata->shape.size() >= 2;
}

/// Arrays of one group and one shape, three of which are called red, green and blue.
void add_bands(const std::vector<InspectedArray>& arrays, std::vector<ColourSet>& sets) {
  using Key = std::tuple<std::string, std::vector<std::int64_t>, std::vector<std::string>>;
  std::map<Key, std::vector<const InspectedArray*>> alike;
  for (const InspectedArray& array : arrays)
    if (const Dims& shape = array.metadata->shape; is_shown(array))
      alike[{parent_group(array.metadata->path), {shape.begin(), shape.end()}, array.dims}]
          .push_back(&array);
  for (const auto& [key, members] : alike) {
    std::vector<std::string> names;
    for (const InspectedArray* member : members) names.push_back(member->name);
    const auto bands = colour_bands(names);
    if (!bands) continue;
    ColourSet set{std::get<0>(key)};
    for (std::size_t c = 0; c < bands->size(); ++c) {
      const InspectedArray* array = members[(*bands)[c]];
      set.parts.push_back({array,
                           std::nullopt,
                           fmt::format("{} {}", kPrimaryNames[c], array->name),
                           kPrimary[c],
                           {}});
    }
    sets.push_back(std::move(set));
  }
}

/// Parses "FF8000"; nullopt for other texts.
std::optional<std::array<double, 3>> colour_of(const Json& text) {
  if (!text.is_string()) return std::nullopt;
  const std::string digits = text.get<std::string>();
  if (digits.size() != 6 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
    return std::nullopt;
  std::array<double, 3> colour{};
  for (std::size_t c = 0; c < colour.size(); ++c)
    colour[c] = std::stoi(digits.substr(2 * c, 2), nullptr, 16) / 255.0;
  return colour;
}

std::optional<std::pair<double, double>> range_of(const Json& channel) {
  const auto window = channel.find("window");
  if (window == channel.end() || !window->is_object()) return std::nullopt;
  const auto start = window->find("start"), end = window->find("end");
  if (start == window->end() || end == window->end() || !start->is_number() || !end->is_number())
    return std::nullopt;
  const std::pair range(start->get<double>(), end->get<double>());
  const bool is_range = std::isfinite(range.first) && std::isfinite(range.second);
  return is_range && range.first < range.second ? std::optional(range) : std::nullopt;
}

/// "channels" of the "omero" of a group; null if there are none.
const Json* omero_channels(const Hierarchy& hierarchy, const std::string& group) {
  const auto found = hierarchy.groups.find(group);
  if (found == hierarchy.groups.end()) return nullptr;
  const Json* at = &found->second.attributes;
  if (at->is_object() && at->contains("ome")) at = &(*at)["ome"];
  for (const char* key : {"omero", "channels"}) {
    if (!at->is_object() || !at->contains(key)) return nullptr;
    at = &(*at)[key];
  }
  return at->is_array() ? at : nullptr;
}

/// Channels of OME-Zarr by their colours; those that are switched off are left out.
std::vector<ColourPart> parts_of_channels(const InspectedArray& array, std::size_t dim,
                                          const Json& channels) {
  std::vector<ColourPart> parts;
  if (std::ssize(channels) != array.metadata->shape[dim]) return parts;
  for (std::int64_t i = 0; i < std::ssize(channels) && parts.size() < kMaxColourParts; ++i) {
    const Json& channel = channels[static_cast<std::size_t>(i)];
    if (!channel.is_object()) return {};
    const auto active = channel.find("active");
    if (active != channel.end() && active->is_boolean() && !active->get<bool>()) continue;
    const auto text = channel.find("color");
    const auto colour = text != channel.end() ? colour_of(*text) : std::nullopt;
    if (!colour) return {};
    const auto label = channel.find("label");
    const std::string name = label != channel.end() && label->is_string()
                                 ? label->get<std::string>()
                                 : fmt::format("channel {}", i);
    parts.push_back({&array, std::pair(dim, i),
                     fmt::format("{} (#{})", name, text->get<std::string>()), *colour,
                     range_of(channel)});
  }
  return parts;
}

std::vector<ColourPart> parts_at(const InspectedArray& array, std::size_t dim,
                                 const std::array<std::size_t, 3>& positions,
                                 const std::vector<std::string>& names) {
  std::vector<ColourPart> parts;
  for (std::size_t c = 0; c < positions.size(); ++c)
    parts.push_back({&array,
                     std::pair(dim, static_cast<std::int64_t>(positions[c])),
                     names.empty() ? std::string(kPrimaryNames[c])
                                   : fmt::format("{} {}", kPrimaryNames[c], names[positions[c]]),
                     kPrimary[c],
                     {}});
  return parts;
}

bool holds_bytes(const InspectedArray& array) {
  const DataType& stored = array.metadata->type;
  return stored.kind == Kind::unsigned_int && stored.itemsize == 1 &&
         !(array.cf && (array.cf->has_scale || array.cf->has_offset));
}

/// An array with a dimension of bands.
std::optional<ColourSet> set_of(const Hierarchy& hierarchy, const InspectedArray& array,
                                const LabelsOf& labels_of) {
  const Dims& shape = array.metadata->shape;
  if (!is_shown(array) || shape.size() < 3) return std::nullopt;
  ColourSet set{array.metadata->path};
  const Json* channels = omero_channels(hierarchy, parent_group(array.metadata->path));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool is_colour = is_colour_dim(array.dims[d]);
    if (channels != nullptr && array.dims[d] == "c") {
      set.parts = parts_of_channels(array, d, *channels);
      set.own_ranges = !set.parts.empty();
    }
    if (set.parts.empty() && is_colour) {
      const std::vector<std::string> labels = labels_of(array, array.dims[d]);
      if (const auto bands = colour_bands(labels)) set.parts = parts_at(array, d, *bands, labels);
    }
    if (set.parts.empty() && (is_colour || d + 1 == shape.size()) &&
        (shape[d] == 3 || shape[d] == 4) && holds_bytes(array)) {
      set.parts = parts_at(array, d, {0, 1, 2}, {});
      set.holds_bytes = true;
    }
    if (!set.parts.empty()) return set;
  }
  return std::nullopt;
}

/// The level of a pyramid that has pixels enough, and not many more.
bool is_better_level(const InspectedArray& level, const InspectedArray& other) {
  constexpr std::int64_t kEnough = 256;
  const auto size = [](const InspectedArray& array) {
    Dims shape = array.metadata->shape;
    std::sort(shape.begin(), shape.end());
    return shape[shape.size() - 2];
  };
  const std::int64_t one = size(level), two = size(other);
  return one >= kEnough ? two < kEnough || one < two : one > two;
}

}  // namespace

std::vector<ColourSet> colour_sets(const Hierarchy& hierarchy,
                                   const std::vector<InspectedArray>& arrays,
                                   const LabelsOf& labels_of) {
  std::vector<ColourSet> sets;
  add_bands(arrays, sets);
  // Arrays of one group with the same dimensions are levels of one image.
  std::map<std::pair<std::string, std::vector<std::string>>, std::size_t> images;
  for (const InspectedArray& array : arrays) {
    std::optional<ColourSet> set = set_of(hierarchy, array, labels_of);
    if (!set) continue;
    const auto [known, is_new] =
        images.try_emplace({parent_group(array.metadata->path), array.dims}, sets.size());
    if (is_new)
      sets.push_back(std::move(*set));
    else if (is_better_level(array, *sets[known->second].parts.front().array))
      sets[known->second] = std::move(*set);
  }
  if (sets.size() > kMaxColourSets) sets.resize(kMaxColourSets);
  return sets;
}

}  // namespace batchfs
