#include "fs/formats/preview.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/labels.h"
#include "engine/view/describe/provenance.h"
#include "engine/view/tensors/tensor_set.h"
#include "fs/formats/colour_bands.h"
#include "fs/formats/picture_axes.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMargin = 8, kGap = 6, kBarWidth = 10,
                       kScaleText = 11 * Canvas::kLetterWidth;

/// Do the lines of a map go northwards? Then the map is drawn the other way round.
bool goes_north(const View& view, const std::string& dim) {
  return std::any_of(view.coordinates().begin(), view.coordinates().end(),
                     [&](const ViewCoordinate& coordinate) {
                       return coordinate.name == dim && goes_north(dim, *coordinate.values);
                     });
}

/// The units of a variable in a tensor, as " [K]"; empty if it has none or is normalised.
std::string units_text(const View& view, std::uint32_t tensor, std::uint32_t variable) {
  constexpr std::size_t kMaxLetters = 24;
  const Json& attributes = view.variables()[variable]->attributes;
  const auto units = attributes.find("units");
  if (units == attributes.end() || !units->is_string()) return {};
  const std::string text = units->get<std::string>();
  if (text.empty() || text.size() > kMaxLetters) return {};
  return view.tensor_set().converter(tensor, variable).finish().normalization ? std::string()
                                                                              : " [" + text + "]";
}

/// The units of a tensor's only variable.
std::string units_of_tensor(const View& view, std::uint32_t tensor) {
  const auto first = view.tensor_set().converters.lower_bound({tensor, 0}),
             end = view.tensor_set().converters.lower_bound({tensor + 1, 0});
  return std::distance(first, end) == 1 ? units_text(view, tensor, first->first.second)
                                        : std::string();
}

/// The units of a channel of a stack: "t2m", or "temperature_500", an entry of "temperature".
std::string units_of_channel(const View& view, std::uint32_t tensor, const std::string& channel) {
  std::size_t best = 0;
  std::string units;
  for (std::uint32_t v = 0; v < view.variables().size(); ++v) {
    const std::string& name = view.variables()[v]->name;
    const bool is_of = view.tensor_set().converters.contains({tensor, v}) &&
                       (channel == name || channel.starts_with(name + "_"));
    if (!is_of || name.size() < best) continue;
    best = name.size();
    units = units_text(view, tensor, v);
  }
  return units;
}

/// An element of the dimensions outside of a map: its first value, and "t2m [K]", "time 1, t2m".
struct Element {
  std::int64_t first = 0;
  std::string label;
};

Element element_of(const View& view, std::uint32_t number, const Dims& shape,
                   const std::vector<std::size_t>& dims, std::int64_t element) {
  const TensorSpec& tensor = view.tensors()[number];
  const Dims strides = c_strides(shape, 1);
  Element result;
  std::vector<std::string> names;
  for (std::size_t o = dims.size(); o-- > 0; element /= shape[dims[o]]) {
    const std::size_t d = dims[o];
    const std::int64_t i = element % shape[d];
    result.first += i * strides[d];
    if (shape[d] == 1 && static_cast<int>(d) != tensor.stack_axis) continue;
    const bool named = static_cast<int>(d) == tensor.stack_axis &&
                       i < static_cast<std::int64_t>(tensor.channels.size());
    if (named) {
      const std::string& channel = tensor.channels[static_cast<std::size_t>(i)];
      names.push_back(channel + units_of_channel(view, number, channel));
    } else {
      names.push_back(fmt::format("{} {}", tensor.dims[d], i));
    }
  }
  std::reverse(names.begin(), names.end());
  result.label = join(names, ", ");
  return result;
}

/// Red, green and blue among the channels of a stack, or among the labels of a dimension.
struct Bands {
  std::size_t dim;
  std::array<std::size_t, 3> positions;
  std::string text;  // "red b04, green b03, blue b02"
};

bool is_text(const DataType& type) {
  return type.kind == Kind::bytes || type.kind == Kind::unicode ||
         type.kind == Kind::variable_string;
}

std::optional<Bands> bands_of(const View& view, const TensorSpec& tensor,
                              const std::vector<std::size_t>& dims) {
  for (const std::size_t d : dims) {
    std::vector<std::string> names;
    if (static_cast<int>(d) == tensor.stack_axis) {
      names = tensor.channels;
    } else {
      for (const ViewCoordinate& coordinate : view.coordinates())
        if (coordinate.name == tensor.dims[d] && is_text(coordinate.values->type))
          for (std::int64_t i = 0; i < coordinate.values->shape[0]; ++i)
            names.push_back(label_text(*coordinate.values, i));
    }
    const auto bands = colour_bands(names);
    if (!bands) continue;
    return Bands{d, *bands,
                 fmt::format("red {}, green {}, blue {}", names[(*bands)[0]], names[(*bands)[1]],
                             names[(*bands)[2]])};
  }
  return std::nullopt;
}

/// "2000-01-01T06:00:00" without trailing zero fields; numbers in few digits.
std::string short_label(const Json& label) {
  if (label.is_number_float()) return fmt::format("{:.6g}", label.get<double>());
  if (!label.is_string()) return label.dump();
  std::string text = label.get<std::string>();
  if (text.size() == 19 && text[10] == 'T') {
    if (text.ends_with(":00")) text.resize(16);
    if (text.ends_with("T00:00")) text.resize(10);
  }
  return text;
}

}  // namespace

namespace {

using Colour = std::array<int, 3>;

/// Colours between those of `stops`, at equal distances.
void blend(Palette& palette, Pixel first, Pixel last, std::span<const Colour> stops) {
  const auto count = static_cast<int>(last - first), parts = static_cast<int>(stops.size()) - 1;
  for (int i = 0; i <= count; ++i) {
    const double at = static_cast<double>(i) * parts / count;
    const auto part = static_cast<std::size_t>(std::min(static_cast<int>(at), parts - 1));
    for (std::size_t c = 0; c < 3; ++c)
      palette[first + static_cast<Pixel>(i)][c] = static_cast<std::uint8_t>(
          std::lround(stops[part][c] +
                      (stops[part + 1][c] - stops[part][c]) * (at - static_cast<double>(part))));
  }
}

/// The first elements of a list.
Json elements_of(const ProvenanceList& list, std::int64_t count) {
  JsonWriter out;
  out.begin_array();
  list.write({0, std::min(count, list.count)}, out);
  out.end_array();
  return Json::parse(out.take());
}

}  // namespace

const Palette& preview_palette() {
  static const Palette palette = [] {
    constexpr std::array<Colour, 9> kViridis = {{{68, 1, 84},
                                                 {71, 44, 122},
                                                 {59, 81, 139},
                                                 {44, 113, 142},
                                                 {33, 144, 141},
                                                 {39, 173, 129},
                                                 {92, 200, 99},
                                                 {170, 220, 50},
                                                 {253, 231, 37}}};
    constexpr std::array<Colour, 11> kBlueRed = {{{5, 48, 97},
                                                  {33, 102, 172},
                                                  {67, 147, 195},
                                                  {146, 197, 222},
                                                  {209, 229, 240},
                                                  {247, 247, 247},
                                                  {253, 219, 199},
                                                  {244, 165, 130},
                                                  {214, 96, 77},
                                                  {178, 24, 43},
                                                  {103, 0, 31}}};
    Palette result{};
    result[Preview::kPaper] = {255, 255, 255};
    result[Preview::kMissing] = {160, 160, 160};
    result[Preview::kNothing] = {235, 235, 235};
    blend(result, Preview::kFirstColour, Preview::kLastColour, kViridis);
    blend(result, Preview::kFirstDiverging, Preview::kLastDiverging, kBlueRed);
    return result;
  }();
  return palette;
}

std::vector<std::string> sample_captions(const View& view, std::int64_t epoch, std::int64_t batch,
                                         std::int64_t count) {
  count = std::min(count, view.sample_count(batch));
  std::vector<std::string> captions(static_cast<std::size_t>(count));
  const auto is_date = [&](const std::string& dim) {
    return std::any_of(view.coordinates().begin(), view.coordinates().end(),
                       [&](const ViewCoordinate& c) {
                         return c.name == dim && c.values->type.kind == Kind::datetime;
                       });
  };
  for (const bool dates : {true, false})
    for (const ProvenanceList& list : provenance_lists(view, epoch, batch)) {
      if (!list.is_coordinate || is_date(list.key) != dates) continue;
      const Json labels = elements_of(list, count);
      for (std::size_t i = 0; i < labels.size(); ++i)
        captions[i] += (captions[i].empty() ? "" : " ") + (dates ? "" : list.key + "=") +
                       short_label(labels[i]);
    }
  return captions;
}

Preview::Preview(const View& view, std::int64_t batch) : height_(kMargin) {
  const std::vector<Dims> shapes = view.shapes(batch);
  for (std::uint32_t t = 0; t < shapes.size(); ++t) add(view, t, shapes[t]);
  width_ += 2 * kMargin;
}

void Preview::add(const View& view, std::uint32_t tensor, const Dims& shape) {
  const TensorSpec& spec = view.tensors()[tensor];
  Sheet sheet;
  std::vector<std::string> extents;
  for (const std::int64_t n : shape) extents.push_back(std::to_string(n));
  sheet.title = fmt::format("{}  {}  {}  ({})", spec.name, spec.type.name(), join(extents, " x "),
                            join(spec.dims, ", "));
  if (spec.stack_axis < 0) sheet.title += units_of_tensor(view, tensor);
  sheet.y = height_;
  sheet.type = spec.type;
  height_ += Canvas::kLineHeight + kGap;
  std::int64_t channels = 1;
  std::vector<std::size_t> others;
  std::optional<ColourSteps> colours;
  std::optional<Bands> bands;
  const bool has_maps = shape.size() >= 3;
  if (has_maps) {
    const PictureAxes axes = picture_axes(view, spec, shape);
    const Dims strides = c_strides(shape, 1);
    sheet.lines = shape[axes.lines];
    sheet.columns = shape[axes.columns];
    sheet.line_step = strides[axes.lines];
    sheet.column_step = strides[axes.columns];
    if (axes.colours) {
      const std::int64_t step = strides[*axes.colours];
      colours = ColourSteps{0, step, 2 * step};
      sheet.holds_bytes = true;
    } else {
      bands = bands_of(view, spec, axes.others);
    }
    sheet.upside_down = goes_north(view, spec.dims[axes.lines]);
    sheet.step = strides[0];
    sheet.maps = std::min(shape[0], kMaxSamples);
    others = axes.others;
    for (const std::size_t d : others) channels *= shape[d];
    sheet.captions_y = height_;
    height_ += Canvas::kLineHeight;
  } else {
    // Samples by values; lone values lie side by side.
    sheet.lines = shape.size() == 2 ? shape[0] : 1;
    sheet.columns = shape.empty() ? 1 : shape.back();
    sheet.line_step = sheet.columns;
    sheet.maps = 1;
  }
  const bool empty = element_count(shape) == 0;
  std::string note;
  if (empty) {
    note = "empty";
    channels = 0;
  } else {
    const std::int64_t longest = std::max(sheet.lines, sheet.columns);
    sheet.average = (longest + kMapSize - 1) / kMapSize;
    if (sheet.average == 1) sheet.enlarge = kMapSize / longest;
  }
  std::optional<ColourSteps> steps;
  std::vector<std::size_t> unnamed = others;  // without the dimension of the bands
  if (bands && !empty) {
    std::erase(unnamed, bands->dim);
    const std::int64_t step = c_strides(shape, 1)[bands->dim];
    steps.emplace();
    for (std::size_t c = 0; c < steps->size(); ++c)
      (*steps)[c] = static_cast<std::int64_t>(bands->positions[c]) * step;
  }
  const std::int64_t in_colours = steps ? channels / shape[bands->dim] : 0;
  const std::int64_t room = std::max<std::int64_t>(kMaxRows - std::ssize(rows_) - in_colours, 0);
  if (room < channels) note = fmt::format("{} of {} are shown", room, channels);
  if (!note.empty()) sheet.title += fmt::format("  {}", note);
  sheets_.push_back(std::move(sheet));
  if (steps) add_rows(view, tensor, shape, unnamed, in_colours, steps, bands->text);
  add_rows(view, tensor, shape, others, channels, colours, {});
  height_ += kMargin;
  const Sheet& added = sheets_.back();
  const std::int64_t maps =
      !empty ? added.maps * (added.width() + kGap) + kBarWidth + kGap + kScaleText : 0;
  std::int64_t letters = static_cast<std::int64_t>(added.title.size());
  for (const Row& row : rows_)
    letters = std::max(letters, static_cast<std::int64_t>(row.label.size()));
  constexpr std::int64_t kMaxText = 1000;
  width_ = std::max({width_, maps, std::min(letters * Canvas::kLetterWidth, kMaxText)});
}

void Preview::add_rows(const View& view, std::uint32_t tensor, const Dims& shape,
                       const std::vector<std::size_t>& others, std::int64_t count,
                       const std::optional<ColourSteps>& colours, const std::string& prefix) {
  if (colours) colours_ = PngColours::full;
  for (std::int64_t i = 0; i < count && std::ssize(rows_) < kMaxRows; ++i) {
    Element element = shape.size() >= 3 ? element_of(view, tensor, shape, others, i) : Element{};
    if (!prefix.empty())
      element.label = prefix + (element.label.empty() ? "" : ", ") + element.label;
    rows_.push_back({tensor, std::move(element.label), height_, element.first, colours});
    if (!rows_.back().label.empty()) height_ += Canvas::kLineHeight;
    // Beside the scale stand its two ends.
    height_ += std::max(sheets_.back().height(), 2 * Canvas::kLineHeight) + kGap;
  }
}

Canvas Preview::draw(const std::vector<std::span<const std::byte>>& tensors,
                     const std::vector<std::string>& captions) const {
  Canvas canvas(width_, height_);
  for (const Sheet& sheet : sheets_) {
    canvas.write(kMargin, sheet.y, sheet.title, kInk);
    if (sheet.captions_y >= 0) draw_captions(canvas, sheet, captions);
  }
  for (const Row& row : rows_) draw_row(canvas, row, tensors[row.tensor]);
  return canvas;
}

void Preview::draw_captions(Canvas& canvas, const Sheet& sheet,
                            const std::vector<std::string>& captions) const {
  const auto letters = static_cast<std::size_t>((sheet.width() + kGap) / Canvas::kLetterWidth - 1);
  for (std::int64_t map = 0; map < sheet.maps && map < static_cast<std::int64_t>(captions.size());
       ++map) {
    const std::string& caption = captions[static_cast<std::size_t>(map)];
    canvas.write(kMargin + map * (sheet.width() + kGap), sheet.captions_y,
                 caption.substr(0, letters), kInk);
  }
}

template <class PixelOf>
void Preview::draw_maps(Canvas& canvas, const Sheet& sheet, std::int64_t top,
                        PixelOf pixel_of) const {
  const std::int64_t across = sheet.across(), down = sheet.down();
  std::size_t at = 0;
  for (std::int64_t map = 0; map < sheet.maps; ++map)
    for (std::int64_t y = 0; y < down; ++y)
      for (std::int64_t x = 0; x < across; ++x, ++at)
        canvas.fill(kMargin + map * (sheet.width() + kGap) + x * sheet.enlarge,
                    top + (sheet.upside_down ? down - 1 - y : y) * sheet.enlarge, sheet.enlarge,
                    sheet.enlarge, pixel_of(at));
}

void Preview::draw_colours(Canvas& canvas, const Row& row, std::int64_t top,
                           std::span<const std::byte> values) const {
  const Sheet& sheet = sheets_[row.tensor];
  std::array<PixelMeans, 3> bands;
  for (std::size_t c = 0; c < bands.size(); ++c)
    bands[c] = pixel_means(sheet, row.first + (*row.colours)[c], values);
  const ColourStretch stretch =
      sheet.holds_bytes ? ColourStretch{0, 255} : ColourStretch::of(bands);
  draw_maps(canvas, sheet, top, [&](std::size_t at) {
    // Bytes equal to the fill value, usually 0, are missing: black.
    const bool is_missing =
        !sheet.holds_bytes && std::all_of(bands.begin(), bands.end(), [&](const PixelMeans& band) {
          return std::isnan(band.values[at]);
        });
    return is_missing ? kMissing
                      : stretched_colour(stretch.part(bands[0].values[at]),
                                         stretch.part(bands[1].values[at]),
                                         stretch.part(bands[2].values[at]));
  });
  if (sheet.holds_bytes) return;
  const std::int64_t left = kMargin + sheet.maps * (sheet.width() + kGap);
  canvas.write(left, top, fmt::format("{:.5g}", stretch.high), kInk);
  canvas.write(left, top + std::max(sheet.height() - Canvas::kLineHeight, Canvas::kLineHeight),
               fmt::format("{:.5g}", stretch.low), kInk);
}

void Preview::draw_row(Canvas& canvas, const Row& row, std::span<const std::byte> values) const {
  const Sheet& sheet = sheets_[row.tensor];
  std::int64_t top = row.y;
  if (!row.label.empty()) {
    canvas.write(kMargin, top, row.label, kInk);
    top += Canvas::kLineHeight;
  }
  if (row.colours) return draw_colours(canvas, row, top, values);
  const PixelMeans means = pixel_means(sheet, row.first, values);
  const ColourScale scale(means);
  draw_maps(canvas, sheet, top, [&](std::size_t at) { return scale.colour(means.values[at]); });

  std::int64_t left = kMargin + sheet.maps * (sheet.width() + kGap);
  const std::int64_t height = std::max(sheet.height(), 2 * Canvas::kLineHeight);
  if (means.least > means.most) {
    canvas.write(left, top, "all missing", kInk);
    return;
  }
  for (std::int64_t y = 0; y < height; ++y)
    canvas.fill(left, top + y, kBarWidth, 1,
                scale.at(static_cast<double>(height - 1 - y) / static_cast<double>(height - 1)));
  left += kBarWidth + kGap;
  canvas.write(left, top, fmt::format("{:.5g}", scale.high), kInk);
  canvas.write(left, top + height - Canvas::kLineHeight, fmt::format("{:.5g}", scale.low), kInk);
}

}  // namespace batchfs
