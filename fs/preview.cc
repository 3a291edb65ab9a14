#include "fs/preview.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/labels.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMargin = 8, kGap = 6, kBarWidth = 10, kScaleText = 11 * Canvas::kLetterWidth;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
T load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

double real_number(std::uint32_t itemsize, const std::byte* data) {
  if (itemsize == 2) return static_cast<double>(load<_Float16>(data));
  return itemsize == 4 ? static_cast<double>(load<float>(data)) : load<double>(data);
}

/// Times as counts, complex numbers by their magnitude; NaN for what is missing.
double number(const DataType& type, const std::byte* data) {
  switch (type.kind) {
    case Kind::boolean: return load<std::uint8_t>(data) != 0 ? 1 : 0;
    case Kind::unsigned_int:
      switch (type.itemsize) {
        case 1: return load<std::uint8_t>(data);
        case 2: return load<std::uint16_t>(data);
        case 4: return load<std::uint32_t>(data);
        default: return static_cast<double>(load<std::uint64_t>(data));
      }
    case Kind::signed_int:
      switch (type.itemsize) {
        case 1: return load<std::int8_t>(data);
        case 2: return load<std::int16_t>(data);
        case 4: return load<std::int32_t>(data);
        default: return static_cast<double>(load<std::int64_t>(data));
      }
    case Kind::datetime: case Kind::timedelta: {
      const auto count = load<std::int64_t>(data);
      return count == std::numeric_limits<std::int64_t>::min() ? kNaN : static_cast<double>(count);
    }
    case Kind::bfloat16: {
      const std::uint32_t bits = std::uint32_t{load<std::uint16_t>(data)} << 16;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
    case Kind::complex: {
      const std::uint32_t half = type.itemsize / 2;
      return std::hypot(real_number(half, data), real_number(half, data + half));
    }
    default: return real_number(type.itemsize, data);
  }
}

/// Do the lines of a map go northwards? Then the map is drawn the other way round.
bool goes_north(const View& view, const std::string& dim) {
  if (dim != "y" && dim.rfind("lat", 0) != 0 && dim != "northing") return false;
  for (const View::Coordinate& coordinate : view.coordinates()) {
    if (coordinate.name != dim || coordinate.values.shape.size() != 1 || coordinate.values.shape[0] < 2) continue;
    if (!coordinate.values.type.is_integer() && coordinate.values.type.kind != Kind::floating) return false;
    return label_number(coordinate.values, 0) < label_number(coordinate.values, 1);
  }
  return false;
}

/// "t2m", "time 1, t2m": an element of the dimensions from the second to `end`, those of one element left out.
std::string row_label(const TensorSpec& tensor, const Dims& shape, std::size_t end, std::int64_t element) {
  std::vector<std::string> names;
  for (std::size_t d = end; d-- > 1; element /= shape[d]) {
    if (shape[d] == 1 && static_cast<int>(d) != tensor.stack_axis) continue;
    const std::int64_t i = element % shape[d];
    const bool named = static_cast<int>(d) == tensor.stack_axis && i < static_cast<std::int64_t>(tensor.channels.size());
    names.push_back(named ? tensor.channels[static_cast<std::size_t>(i)] : fmt::format("{} {}", tensor.dims[d], i));
  }
  std::reverse(names.begin(), names.end());
  return join(names, ", ");
}

}  // namespace

const Palette& preview_palette() {
  static const Palette palette = [] {
    constexpr std::array<std::array<int, 3>, 9> kViridis = {{{68, 1, 84}, {71, 44, 122}, {59, 81, 139}, {44, 113, 142},
        {33, 144, 141}, {39, 173, 129}, {92, 200, 99}, {170, 220, 50}, {253, 231, 37}}};
    Palette result{};
    result[Preview::kPaper] = {255, 255, 255};
    result[Preview::kMissing] = {160, 160, 160};
    result[Preview::kNothing] = {235, 235, 235};
    constexpr int kCount = 256 - Preview::kFirstColour, kParts = static_cast<int>(kViridis.size()) - 1;
    for (int i = 0; i < kCount; ++i) {
      const double at = static_cast<double>(i) * kParts / (kCount - 1);
      const int part = std::min(static_cast<int>(at), kParts - 1);
      for (std::size_t c = 0; c < 3; ++c) {
        const auto& low = kViridis[static_cast<std::size_t>(part)];
        const auto& high = kViridis[static_cast<std::size_t>(part) + 1];
        result[static_cast<std::size_t>(Preview::kFirstColour + i)][c] =
            static_cast<std::uint8_t>(std::lround(low[c] + (high[c] - low[c]) * (at - part)));
      }
    }
    return result;
  }();
  return palette;
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
  sheet.title = fmt::format("{}  {}  {}  ({})", spec.name, spec.type.name(), join(extents, " x "), join(spec.dims, ", "));
  sheet.y = height_;
  sheet.type = spec.type;
  height_ += Canvas::kLineHeight + kGap;
  std::int64_t channels = 1;
  if (shape.size() >= 3) {
    sheet.lines = shape[shape.size() - 2];
    sheet.columns = shape.back();
    sheet.upside_down = goes_north(view, spec.dims[shape.size() - 2]);
    sheet.step = element_count(shape) / std::max<std::int64_t>(shape[0], 1);
    sheet.maps = std::min(shape[0], kMostSamples);
    for (std::size_t d = 1; d + 2 < shape.size(); ++d) channels *= shape[d];
  } else {
    // Samples by values; lone values lie side by side.
    sheet.lines = shape.size() == 2 ? shape[0] : 1;
    sheet.columns = shape.empty() ? 1 : shape.back();
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
  const std::int64_t room = std::max<std::int64_t>(kMostRows - static_cast<std::int64_t>(rows_.size()), 0);
  const std::int64_t shown = std::min(channels, room);
  if (shown < channels) note = fmt::format("{} of {} are shown", shown, channels);
  if (!note.empty()) sheet.title += fmt::format("  {}", note);
  for (std::int64_t c = 0; c < shown; ++c) {
    const std::size_t map_begins = shape.size() >= 3 ? shape.size() - 2 : 1;
    rows_.push_back({tensor, shape.size() >= 3 ? row_label(spec, shape, map_begins, c) : "", height_,
                     c * sheet.lines * sheet.columns});
    if (!rows_.back().label.empty()) height_ += Canvas::kLineHeight;
    // Beside the scale stand its two ends.
    height_ += std::max(sheet.height(), 2 * Canvas::kLineHeight) + kGap;
  }
  height_ += kMargin;
  const std::int64_t maps = !empty ? sheet.maps * (sheet.width() + kGap) + kBarWidth + kGap + kScaleText : 0;
  std::int64_t letters = static_cast<std::int64_t>(sheet.title.size());
  for (const Row& row : rows_) letters = std::max(letters, static_cast<std::int64_t>(row.label.size()));
  constexpr std::int64_t kMostText = 1000;
  width_ = std::max({width_, maps, std::min(letters * Canvas::kLetterWidth, kMostText)});
  sheets_.push_back(std::move(sheet));
}

Canvas Preview::draw(const std::vector<std::span<const std::byte>>& tensors) const {
  Canvas canvas(width_, height_);
  for (const Sheet& sheet : sheets_) canvas.write(kMargin, sheet.y, sheet.title, kInk);
  for (const Row& row : rows_) draw_row(canvas, row, tensors[row.tensor]);
  return canvas;
}

void Preview::draw_row(Canvas& canvas, const Row& row, std::span<const std::byte> values) const {
  const Sheet& sheet = sheets_[row.tensor];
  const std::int64_t across = (sheet.columns + sheet.average - 1) / sheet.average;
  const std::int64_t down = (sheet.lines + sheet.average - 1) / sheet.average;
  // The mean of what is there of the elements of each pixel.
  std::vector<double> means(static_cast<std::size_t>(sheet.maps * down * across), kNaN);
  double least = std::numeric_limits<double>::infinity(), most = -least;
  std::size_t at = 0;
  for (std::int64_t map = 0; map < sheet.maps; ++map)
    for (std::int64_t y = 0; y < down; ++y)
      for (std::int64_t x = 0; x < across; ++x, ++at) {
        double sum = 0;
        std::int64_t count = 0;
        for (std::int64_t j = y * sheet.average; j < std::min((y + 1) * sheet.average, sheet.lines); ++j)
          for (std::int64_t i = x * sheet.average; i < std::min((x + 1) * sheet.average, sheet.columns); ++i) {
            const std::int64_t element = row.first + map * sheet.step + j * sheet.columns + i;
            const double value = number(sheet.type, values.data() + element * sheet.type.itemsize);
            if (!std::isfinite(value)) continue;
            sum += value;
            ++count;
          }
        if (count == 0) continue;
        means[at] = sum / static_cast<double>(count);
        least = std::min(least, means[at]);
        most = std::max(most, means[at]);
      }

  constexpr double kColours = 255 - kFirstColour;
  const auto colour = [&](double value) {
    if (std::isnan(value)) return kMissing;
    const double place = most > least ? (value - least) / (most - least) : 0.5;
    return static_cast<std::uint8_t>(kFirstColour + std::lround(std::clamp(place, 0.0, 1.0) * kColours));
  };
  std::int64_t top = row.y;
  if (!row.label.empty()) {
    canvas.write(kMargin, top, row.label, kInk);
    top += Canvas::kLineHeight;
  }
  at = 0;
  std::int64_t left = kMargin;
  for (std::int64_t map = 0; map < sheet.maps; ++map, left += sheet.width() + kGap)
    for (std::int64_t y = 0; y < down; ++y)
      for (std::int64_t x = 0; x < across; ++x, ++at)
        canvas.fill(left + x * sheet.enlarge, top + (sheet.upside_down ? down - 1 - y : y) * sheet.enlarge, sheet.enlarge,
                    sheet.enlarge, colour(means[at]));

  const std::int64_t height = std::max(sheet.height(), 2 * Canvas::kLineHeight);
  if (least > most) {
    canvas.write(left, top, "all missing", kInk);
    return;
  }
  for (std::int64_t y = 0; y < height; ++y)
    canvas.fill(left, top + y, kBarWidth, 1,
                static_cast<std::uint8_t>(kFirstColour + std::lround(kColours * static_cast<double>(height - 1 - y) /
                                                                     static_cast<double>(height - 1))));
  left += kBarWidth + kGap;
  canvas.write(left, top, fmt::format("{:.5g}", most), kInk);
  canvas.write(left, top + height - Canvas::kLineHeight, fmt::format("{:.5g}", least), kInk);
}

}  // namespace batchfs
