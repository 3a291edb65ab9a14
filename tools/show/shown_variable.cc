#include "tools/show/shown_variable.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/labels.h"
#include "engine/zarr/node_path.h"
#include "fs/formats/colour_bands.h"
#include "fs/formats/png.h"
#include "fs/formats/preview.h"
#include "tools/cli/text_layout.h"
#include "tools/page/number_text.h"
#include "tools/show/coastline.h"

namespace batchfs {

namespace {

constexpr double kPictureWidth = 720, kMinHeight = 90, kMaxHeight = 720;
constexpr std::uint64_t kMaxIndexBytes = 8 << 20;  // of a coordinate that is read
constexpr std::int64_t kMaxIndexChunks = 64;

/// The values of a dimension's coordinate; null if there is none, it is large or cannot be read.
const Dataset::Index* index_of(const Dataset& coordinates, const std::string& dim) {
  const Variable* variable = coordinates.index_of(dim);
  if (variable == nullptr || variable->cf.joined_characters > 0) return nullptr;
  if (variable->array != nullptr) {
    const Array& array = *variable->array;
    const auto bytes = static_cast<std::uint64_t>(variable->shape[0]) * array.type().itemsize;
    if (bytes > kMaxIndexBytes || array.chunk_bytes() > kMaxIndexBytes ||
        array.grid().chunk_count() > kMaxIndexChunks)
      return nullptr;
  } else if (static_cast<std::uint64_t>(variable->shape[0]) * 8 > kMaxIndexBytes) {
    return nullptr;
  }
  try {
    return &coordinates.index(dim);
  } catch (const Error&) {
    return nullptr;
  }
}

std::string text_attribute(const Json& attributes, const char* key) {
  constexpr std::size_t kMaxText = 200;
  const auto found = attributes.find(key);
  return found != attributes.end() && found->is_string()
             ? shortened(found->get<std::string>(), kMaxText)
             : std::string();
}

std::vector<DimFacts> facts_of(const Variable& variable, const Dataset& coordinates) {
  std::vector<DimFacts> facts;
  for (const std::string& dim : variable.dims) {
    DimFacts fact{dim};
    if (const Variable* index = coordinates.index_of(dim)) {
      fact.attributes = index->attributes;
      fact.is_time = index->cf.time != CfDecoding::Time::none ||
                     index->cf.decoded.kind == Kind::datetime ||
                     index->cf.decoded.kind == Kind::timedelta;
    }
    facts.push_back(std::move(fact));
  }
  return facts;
}

/// "2000-01-15T00:00:00" -> "2000-01-15", "500.0" -> "500".
std::string short_label(std::string text) {
  constexpr std::size_t kMaxLabel = 40;
  for (const char* end : {"T00:00:00", ".0"})
    if (text.ends_with(end)) text.resize(text.size() - std::string_view(end).size());
  return shortened(text, kMaxLabel);
}

/// Empty if the dimension has no labels, or no such position.
std::string label_at(const Dataset& coordinates, const std::string& dim, std::int64_t i) {
  const Dataset::Index* index = index_of(coordinates, dim);
  if (index == nullptr || i < 0 || i >= index->values.shape[0]) return {};
  return short_label(label_text(*index, i));
}

/// "time 2000-01-15 (16 of 31), level 500 (3 of 13)".
std::string position_text(const Variable& variable, const Dataset& coordinates,
                          const SamplePlan& plan) {
  if (plan.box.empty()) return {};
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < variable.dims.size(); ++d) {
    const bool shown =
        plan.plane ? d == plan.plane->lines || d == plan.plane->columns : variable.dims.size() == 1;
    if (shown || plan.held == d) continue;
    const std::string label = label_at(coordinates, variable.dims[d], plan.box.start[d]);
    parts.push_back(fmt::format("{}{}{} ({} of {})", variable.dims[d], label.empty() ? "" : " ",
                                label,
                                format_count(static_cast<std::uint64_t>(plan.box.start[d]) + 1),
                                format_count(static_cast<std::uint64_t>(variable.shape[d]))));
  }
  return join(parts, ", ");
}

std::string region_text(const Variable& variable, const SamplePlan& plan) {
  if (plan.is_whole_plane) return {};
  std::vector<std::string> taken, all;
  for (std::size_t d = 0; d < variable.dims.size(); ++d) {
    const bool shown = plan.plane ? d == plan.plane->lines || d == plan.plane->columns : d == 0;
    if (!shown) continue;
    taken.push_back(std::to_string(plan.box.shape[d]));
    all.push_back(std::to_string(variable.shape[d]));
  }
  return fmt::format("the middle {} of {}", join(taken, " x "), join(all, " x "));
}

/// The numbers along a dimension of the box, in the order that a picture shows them.
std::vector<double> degrees(const NdArray& values, std::int64_t start, std::int64_t count,
                            bool reversed) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < count; ++i)
    result.push_back(static_cast<double>(label_number(values, start + i)));
  if (reversed) std::reverse(result.begin(), result.end());
  return result;
}

ShownAxis axis_of(const Variable& variable, const Dataset& coordinates, const SamplePlan& plan,
                  std::size_t d, bool reversed) {
  ShownAxis axis;
  axis.name = variable.dims[d];
  const Variable* index = coordinates.index_of(axis.name);
  const bool is_time = index != nullptr && index->cf.time != CfDecoding::Time::none;
  if (index != nullptr && !is_time) axis.units = text_attribute(index->attributes, "units");
  axis.first = label_at(coordinates, axis.name, plan.box.start[d]);
  axis.last = label_at(coordinates, axis.name, plan.box.start[d] + plan.box.shape[d] - 1);
  if (axis.first.empty()) {
    axis.first = "#" + std::to_string(plan.box.start[d]);
    axis.last = "#" + std::to_string(plan.box.start[d] + plan.box.shape[d] - 1);
  }
  if (reversed) std::swap(axis.first, axis.last);
  return axis;
}

/// Sets axes and coastline. Is the first line of the sample the lowest of the picture?
bool add_frame(ShownVariable& shown, const Variable& variable, const Dataset& coordinates,
               const VariableSample& sample) {
  const SamplePlan& plan = sample.plan;
  const std::size_t l = plan.plane->lines, c = plan.plane->columns;
  const std::string &line_dim = variable.dims[l], &column_dim = variable.dims[c];
  const Dataset::Index *rows = index_of(coordinates, line_dim),
                       *columns = index_of(coordinates, column_dim);
  // Lines of images go down, whatever their axis counts.
  const Variable* line_index = coordinates.index_of(line_dim);
  const bool is_image = line_index != nullptr && line_index->axis != nullptr;
  const bool flipped = !is_image && rows != nullptr && goes_north(line_dim, rows->values);
  shown.across = sample.across;
  shown.down = sample.down;
  shown.lines = axis_of(variable, coordinates, plan, l, flipped);
  shown.columns = axis_of(variable, coordinates, plan, c, false);
  const std::vector<DimFacts> facts = facts_of(variable, coordinates);
  const auto has_degrees = [](const Dataset::Index* index) {
    return index != nullptr &&
           (index->values.type.is_integer() || index->values.type.kind == Kind::floating);
  };
  if (!is_latitude(facts[l]) || !is_longitude(facts[c]) || !has_degrees(rows) ||
      !has_degrees(columns))
    return flipped;
  const auto [width, height] = picture_size(shown.across, shown.down);
  shown.coast = coast_path(degrees(columns->values, plan.box.start[c], plan.box.shape[c], false),
                           degrees(rows->values, plan.box.start[l], plan.box.shape[l], flipped),
                           width, height);
  return flipped;
}

/// `pixel_of`: from the number of an element of the sample's plane.
template <class PixelOf>
void add_png(ShownVariable& shown, bool flipped, PngColours colours, PixelOf pixel_of) {
  std::vector<Pixel> pixels;
  for (std::int64_t y = 0; y < shown.down; ++y) {
    const std::int64_t line = flipped ? shown.down - 1 - y : y;
    for (std::int64_t x = 0; x < shown.across; ++x)
      pixels.push_back(pixel_of(static_cast<std::size_t>(line * shown.across + x)));
  }
  shown.png =
      compressed_png(static_cast<std::uint32_t>(shown.across),
                     static_cast<std::uint32_t>(shown.down), preview_palette(), pixels, colours);
}

}  // namespace

std::pair<double, double> picture_size(std::int64_t across, std::int64_t down) {
  const double height = kPictureWidth * static_cast<double>(down) /
                        static_cast<double>(std::max<std::int64_t>(1, across));
  if (height <= kMaxHeight) return {kPictureWidth, std::max(kMinHeight, height)};
  return {std::max(kMinHeight, kPictureWidth * kMaxHeight / height), kMaxHeight};
}

std::shared_ptr<const Dataset> VariableReader::coordinates_of(
    const std::string& group, const std::vector<std::string>& dims) {
  std::vector<std::string> key = dims;
  key.push_back(group);
  const auto known = coordinates_.find(key);
  if (known != coordinates_.end()) return known->second;
  auto dataset = std::make_shared<const Dataset>(opened_.store, *opened_.hierarchy, group,
                                                 std::set<std::string>(dims.begin(), dims.end()));
  return coordinates_.emplace(std::move(key), std::move(dataset)).first->second;
}

std::vector<std::string> VariableReader::labels_of(const InspectedArray& array,
                                                   const std::string& dim) {
  constexpr std::int64_t kMaxLabels = 64;
  std::vector<std::string> labels;
  try {
    const auto coordinates = coordinates_of(parent_group(array.metadata->path), array.dims);
    const Index* index = index_of(*coordinates, dim);
    if (index == nullptr || index->values.shape[0] > kMaxLabels) return labels;
    for (std::int64_t i = 0; i < index->values.shape[0]; ++i)
      labels.push_back(label_text(*index, i));
  } catch (const Error&) {
    labels.clear();  // unreadable coordinates have no labels; inspect reports why
  }
  return labels;
}

struct VariableReader::Part {
  std::shared_ptr<const Dataset> coordinates, dataset;
  const Variable* variable;
  VariableSample sample;
};

VariableReader::Part VariableReader::read(const ColourPart& part, const SampleLimits& limits) {
  Part result;
  const std::string group = parent_group(part.array->metadata->path);
  result.coordinates = coordinates_of(group, part.array->dims);
  std::set<std::string> names(part.array->dims.begin(), part.array->dims.end());
  names.insert(part.array->name);
  result.dataset = std::make_shared<const Dataset>(opened_.store, *opened_.hierarchy, group, names);
  result.variable = &result.dataset->variable(part.array->name);
  SamplePlan plan =
      plan_sample(*result.variable, facts_of(*result.variable, *result.coordinates), limits);
  if (part.at) {
    if (plan.plane &&
        (plan.plane->lines == part.at->first || plan.plane->columns == part.at->first))
      throw Error(ErrorCode::not_supported, "its bands are a dimension of the picture");
    plan.held = part.at->first;
    if (!plan.box.empty()) plan.box.start[part.at->first] = part.at->second;
  }
  result.sample = read_sample(engine_, *result.variable, std::move(plan));
  return result;
}

ShownVariable VariableReader::look_at(const ColourSet& set, const SampleLimits& limits) {
  ShownVariable shown;
  shown.path = set.path.empty() ? "/" : set.path;
  try {
    std::vector<Part> parts;
    SampleLimits left = limits;
    left.bytes /= set.parts.size();
    for (const ColourPart& part : set.parts) {
      parts.push_back(read(part, left));
      shown.chunks += parts.back().sample.plan.chunks;
      shown.bytes += parts.back().sample.plan.bytes;
    }
    const Part& first = parts.front();
    for (const Part& part : parts)
      if (part.sample.across != first.sample.across || part.sample.down != first.sample.down)
        throw Error(ErrorCode::not_supported, "the bands are cut into chunks in different ways");
    shown.position = position_text(*first.variable, *first.coordinates, first.sample.plan);
    shown.region = region_text(*first.variable, first.sample.plan);
    if (first.sample.across == 0 || first.sample.down == 0)
      throw Error(ErrorCode::not_found, "it has no elements");
    std::vector<PixelMeans> means;
    for (Part& part : parts) means.push_back(std::move(part.sample.means));
    const ColourStretch common = set.holds_bytes ? ColourStretch{0, 255} : ColourStretch::of(means);
    std::vector<ColourStretch> stretches;
    std::vector<std::string> names;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const auto& range = set.parts[p].range;
      stretches.push_back(!set.own_ranges ? common
                          : range         ? ColourStretch{range->first, range->second}
                                          : ColourStretch::of({&means[p], 1}));
      names.push_back(set.parts[p].name);
      if (set.own_ranges)
        names.back() += fmt::format(" {} to {}", number_text(stretches[p].low, 5),
                                    number_text(stretches[p].high, 5));
    }
    constexpr std::size_t kMaxTitle = 300;
    shown.title = shortened(join(names, ", "), kMaxTitle);
    if (!set.own_ranges && !set.holds_bytes)
      shown.title += fmt::format(": {} to {}, without 2 % at each end", number_text(common.low, 5),
                                 number_text(common.high, 5));
    const bool flipped = add_frame(shown, *first.variable, *first.coordinates, first.sample);
    add_png(shown, flipped, PngColours::full, [&](std::size_t at) {
      std::array<double, 3> colour{};
      bool any = set.holds_bytes;  // of bytes, the fill value is black
      for (std::size_t p = 0; p < means.size(); ++p) {
        const double value = means[p].values[at], part = stretches[p].part(value);
        any = any || !std::isnan(value);
        for (std::size_t c = 0; c < colour.size(); ++c) colour[c] += part * set.parts[p].colour[c];
      }
      return any ? stretched_colour(colour[0], colour[1], colour[2]) : Preview::kMissing;
    });
  } catch (const Error& error) {
    shown.why_not = error.why();
  }
  return shown;
}

ShownVariable VariableReader::look_at(const InspectedArray& array, const std::string& name,
                                      const SampleLimits& limits) {
  ShownVariable shown;
  shown.array = &array;
  const std::string group = parent_group(array.metadata->path);
  shown.path = array.metadata->path.empty() && array.fields.empty() ? "/" : join_path(group, name);
  try {
    std::set<std::string> names(array.dims.begin(), array.dims.end());
    const auto coordinates = coordinates_of(group, array.dims);
    names.insert(name);
    const Dataset dataset(opened_.store, *opened_.hierarchy, group, names);
    const Variable& variable = dataset.variable(name);
    shown.title = text_attribute(variable.attributes, "long_name");
    const bool is_time = variable.cf.time != CfDecoding::Time::none;
    shown.units = is_time ? "" : text_attribute(variable.attributes, "units");
    shown.type = variable.cf.decoded.name();
    const SamplePlan plan = plan_sample(variable, facts_of(variable, *coordinates), limits);
    const VariableSample sample = read_sample(engine_, variable, plan);
    shown.position = position_text(variable, *coordinates, sample.plan);
    shown.region = region_text(variable, sample.plan);
    shown.summary = sample.summary;
    shown.chunks = plan.chunks;
    shown.bytes = plan.bytes;
    if (sample.plan.plane && sample.summary.finite() > 0) {
      const bool flipped = add_frame(shown, variable, *coordinates, sample);
      shown.scale.emplace(sample.means);
      add_png(shown, flipped, PngColours::indexed,
              [&](std::size_t at) { return shown.scale->colour(sample.means.values[at]); });
    }
  } catch (const Error& error) {
    shown.why_not = error.why();
  }
  return shown;
}

}  // namespace batchfs
