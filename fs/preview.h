#pragma once
// What a batch looks like: the tensors' channels as small maps on one sheet.
//
// The last two dimensions of a tensor are a map; every element of the dimensions before them is a row of the sheet, which
// has the map of each of the first samples, on one colour scale, and the scale. A tensor with one dimension besides the
// samples is one picture of samples by values.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/view/view.h"
#include "fs/canvas.h"
#include "fs/png.h"

namespace batchfs {

/// White, black, grey for missing values, light grey; from kFirstColour on viridis, dark to light.
const Palette& preview_palette();

class Preview {
 public:
  static constexpr std::uint8_t kPaper = 0, kInk = 1, kMissing = 2, kNothing = 3, kFirstColour = 16;
  static constexpr std::int64_t kMostSamples = 4, kMostRows = 96, kMapSize = 192;

  /// The sheet of a batch, laid out; needs no values.
  Preview(const View& view, std::int64_t batch);

  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }

  /// `tensors`: the values of each tensor of the batch, C order, native byte order.
  Canvas draw(const std::vector<std::span<const std::byte>>& tensors) const;

  /// Maps of the same channel, side by side.
  struct Row {
    std::uint32_t tensor = 0;
    std::string label;
    std::int64_t y = 0;
    std::int64_t first = 0;  // element that the first map begins with
  };
  struct Sheet {
    std::string title;
    std::int64_t y = 0;
    DataType type;
    std::int64_t lines = 0, columns = 0;  // elements of a map
    std::int64_t maps = 0, step = 0;      // maps side by side, and how many elements they are apart
    std::int64_t average = 1, enlarge = 1;  // elements that a pixel stands for, pixels of an element, either way
    bool upside_down = false;               // the first line is the southernmost
    std::int64_t width() const { return (columns + average - 1) / average * enlarge; }
    std::int64_t height() const { return (lines + average - 1) / average * enlarge; }
  };
  /// One per tensor, and their rows.
  const std::vector<Sheet>& sheets() const { return sheets_; }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  void add(const View& view, std::uint32_t tensor, const Dims& shape);
  void draw_row(Canvas& canvas, const Row& row, std::span<const std::byte> values) const;

  std::vector<Sheet> sheets_;
  std::vector<Row> rows_;
  std::int64_t width_ = 0, height_ = 0;
};

}  // namespace batchfs
