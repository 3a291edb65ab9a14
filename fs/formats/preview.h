#pragma once
// A preview of a batch: the tensors' channels as small maps on one sheet.
//
// Two dimensions of a tensor are a map (picture_axes.h says which); every element of the other
// dimensions is a row of the sheet, which has the map of each of the first samples, on one colour
// scale, and the scale. Values on both sides of zero have a scale around zero. Red, green and blue
// of pictures are shown as such; other tensors with bands of these names have rows in true colours
// before those of the bands. A tensor with one dimension besides the samples is one picture of
// samples by values.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/view/geometry.h"
#include "engine/view/view.h"
#include "fs/formats/canvas.h"
#include "fs/formats/pixel_means.h"
#include "fs/formats/png.h"

namespace batchfs {

/// White, black, grey for missing values, light grey; then viridis, dark to light; then blue over
/// white to red.
const Palette& preview_palette();

/// For each of the first `count` samples of a batch its coordinates, dates first:
/// "2000-01-01T06:00 latitude=10".
std::vector<std::string> sample_captions(const View& view, std::int64_t epoch, std::int64_t batch,
                                         std::int64_t count);

class Preview {
 public:
  static constexpr Pixel kPaper = 0, kInk = 1, kMissing = 2, kNothing = 3;
  static constexpr Pixel kFirstColour = 16, kLastColour = 135;         // viridis
  static constexpr Pixel kFirstDiverging = 136, kLastDiverging = 254;  // zero is in the middle
  static constexpr std::int64_t kMaxSamples = 4, kMaxRows = 96, kMapSize = 192;

  /// The sheet of a batch, laid out; needs no values.
  Preview(const View& view, std::int64_t batch);

  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }
  /// Full where a tensor is shown in its own colours.
  PngColours colours() const { return colours_; }

  /// `tensors`: the values of each tensor of the batch, C order, native byte order. `captions`: of
  /// the samples; may be empty.
  Canvas draw(const std::vector<std::span<const std::byte>>& tensors,
              const std::vector<std::string>& captions = {}) const;

  /// Elements from the first of a row to those of red, green and blue.
  using ColourSteps = std::array<std::int64_t, 3>;

  /// Maps of the same channel, side by side.
  struct Row {
    std::uint32_t tensor = 0;
    std::string label;
    std::int64_t y = 0;
    std::int64_t first = 0;              // element that the first map begins with
    std::optional<ColourSteps> colours;  // nullopt: values on a scale
  };
  struct Sheet : MapGrid {
    std::string title;
    std::int64_t y = 0;
    bool holds_bytes = false;      // colours are values from 0 to 255, else they are stretched
    std::int64_t enlarge = 1;      // pixels of an element, either way
    bool upside_down = false;      // the first line is the southernmost
    std::int64_t captions_y = -1;  // of the line that names the samples; -1: none
    std::int64_t width() const { return across() * enlarge; }
    std::int64_t height() const { return down() * enlarge; }
  };
  /// One per tensor, and their rows.
  const std::vector<Sheet>& sheets() const { return sheets_; }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  void add(const View& view, std::uint32_t tensor, const Dims& shape);
  void add_rows(const View& view, std::uint32_t tensor, const Dims& shape,
                const std::vector<std::size_t>& others, std::int64_t count,
                const std::optional<ColourSteps>& colours, const std::string& prefix);
  void draw_row(Canvas& canvas, const Row& row, std::span<const std::byte> values) const;
  template <class PixelOf>
  void draw_maps(Canvas& canvas, const Sheet& sheet, std::int64_t top, PixelOf pixel_of) const;
  void draw_colours(Canvas& canvas, const Row& row, std::int64_t top,
                    std::span<const std::byte> values) const;
  void draw_captions(Canvas& canvas, const Sheet& sheet,
                     const std::vector<std::string>& captions) const;

  std::vector<Sheet> sheets_;
  std::vector<Row> rows_;
  std::int64_t width_ = 0, height_ = 0;
  PngColours colours_ = PngColours::indexed;
};

}  // namespace batchfs
