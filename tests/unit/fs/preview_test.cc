#include "fs/preview.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T>
std::vector<std::span<const std::byte>> tensors(const std::vector<T>& values) {
  return {std::as_bytes(std::span(values))};
}

/// The colour in the middle of an element of a map.
std::uint8_t colour(const Preview& preview, const Canvas& canvas, std::int64_t row, std::int64_t map, std::int64_t line,
                    std::int64_t column) {
  const Preview::Row& at = preview.rows()[static_cast<std::size_t>(row)];
  const Preview::Sheet& sheet = preview.sheets()[at.tensor];
  const std::int64_t left = 8 + map * (sheet.width() + 6), top = at.y + (at.label.empty() ? 0 : Canvas::kLineHeight);
  return canvas.at(left + column * sheet.enlarge + sheet.enlarge / 2, top + line * sheet.enlarge + sheet.enlarge / 2);
}

TEST(Preview, ColoursGoFromTheLeastToTheMostOfAChannel) {
  MemoryData data;
  data.declare("a", "<f4", {"t", "y", "x"}, {4, 2, 3}, {1, 2, 3}).declare("b", "<f4", {"t", "y", "x"}, {4, 2, 3}, {1, 2, 3});
  const auto view = parse_view(data.dataset(), R"({"window": {"t": 1}, "batch": 2,
      "tensors": {"x": {"variables": ["a", "b"], "stack": "channel", "dims": ["channel", "y", "x"]}}})");
  const Preview preview(*view, 0);
  ASSERT_EQ(preview.rows().size(), 2u);
  EXPECT_EQ(preview.rows()[0].label, "a_0");
  EXPECT_EQ(preview.rows()[1].label, "b_0");
  ASSERT_EQ(preview.sheets().size(), 1u);
  EXPECT_EQ(preview.sheets()[0].title, "x  float32  2 x 2 x 2 x 3  (sample, channel, y, x)");
  EXPECT_EQ(preview.sheets()[0].maps, 2);
  EXPECT_EQ(preview.sheets()[0].enlarge, 64);
  const std::vector<float> values = {0, 1, 2, 3, 4, 5,        7, 7, 7, 7, 7, 7,
                                     6, 7, 8, 9, 10, kNaN,    7, 7, INFINITY, 7, 7, 7};
  const Canvas canvas = preview.draw(tensors(values));
  EXPECT_EQ(canvas.width(), preview.width());
  EXPECT_EQ(canvas.height(), preview.height());
  const std::uint8_t first = Preview::kFirstColour;
  // a: 0 to 10 over both samples; 239 steps between the first colour and the last.
  EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 0), first);
  EXPECT_EQ(colour(preview, canvas, 0, 0, 1, 2), first + 120);
  EXPECT_EQ(colour(preview, canvas, 0, 1, 0, 0), first + 143);
  EXPECT_EQ(colour(preview, canvas, 0, 1, 1, 1), 255);
  EXPECT_EQ(colour(preview, canvas, 0, 1, 1, 2), Preview::kMissing);
  // b: nothing but one value, and one that is not finite.
  EXPECT_EQ(colour(preview, canvas, 1, 0, 0, 0), first + 120);
  EXPECT_EQ(colour(preview, canvas, 1, 1, 0, 2), Preview::kMissing);
}

TEST(Preview, NorthIsUp) {
  for (const bool north_first : {false, true}) {
    MemoryData data;
    data.declare("a", "<f4", {"t", "latitude", "x"}, {2, 3, 2}, {1, 3, 2});
    if (north_first) data.index<double>("latitude", "<f8", {60, 50, 40});
    else data.index<double>("latitude", "<f8", {40, 50, 60});
    const auto view = parse_view(data.dataset(), R"({"window": {"t": 1}, "variables": ["a"]})");
    const Preview preview(*view, 0);
    const Canvas canvas = preview.draw(tensors(std::vector<float>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(colour(preview, canvas, 0, 0, north_first ? 0 : 2, 0), Preview::kFirstColour);
    EXPECT_EQ(colour(preview, canvas, 0, 0, north_first ? 2 : 0, 1), 255);
  }
}

TEST(Preview, LargeMapsAreMeansOfWhatIsThere) {
  MemoryData data;
  data.declare("a", "<i2", {"t", "y", "x"}, {1, 300, 500}, {1, 300, 500});
  const auto view = parse_view(data.dataset(), R"({"window": {"t": 1}})");
  const Preview preview(*view, 0);
  const Preview::Sheet& sheet = preview.sheets()[0];
  EXPECT_EQ(sheet.average, 3);
  EXPECT_EQ(sheet.width(), 167);
  EXPECT_EQ(sheet.height(), 100);
  std::vector<std::int16_t> values(300 * 500, 0);
  for (int y = 0; y < 3; ++y)
    for (int x = 498; x < 500; ++x) values[static_cast<std::size_t>(y * 500 + x)] = 30;  // the last pixel has two columns
  values[static_cast<std::size_t>(299 * 500)] = 90;                                      // a ninth of its pixel: 10
  const Canvas canvas = preview.draw(tensors(values));
  EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 166), 255);
  EXPECT_EQ(colour(preview, canvas, 0, 0, 99, 0), Preview::kFirstColour + 80);
  EXPECT_EQ(colour(preview, canvas, 0, 0, 50, 50), Preview::kFirstColour);
}

TEST(Preview, EveryNumberHasAPicture) {
  struct Case {
    const char* dtype;
    std::string low, high;
  };
  const auto bytes = [](auto value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto two = [&](auto value) { return bytes(value) + bytes(value); };
  const std::vector<Case> cases = {
      {"|b1", bytes(std::uint8_t{0}), bytes(std::uint8_t{1})},
      {"|i1", bytes(std::int8_t{-5}), bytes(std::int8_t{5})},
      {"|u1", bytes(std::uint8_t{5}), bytes(std::uint8_t{200})},
      {"<i2", bytes(std::int16_t{-300}), bytes(std::int16_t{300})},
      {"<u2", bytes(std::uint16_t{3}), bytes(std::uint16_t{60000})},
      {"<i4", bytes(std::int32_t{-70000}), bytes(std::int32_t{1})},
      {"<u4", bytes(std::uint32_t{7}), bytes(std::uint32_t{4000000000})},
      {"<i8", bytes(std::int64_t{-1} << 40), bytes(std::int64_t{1})},
      {"<u8", bytes(std::uint64_t{1}), bytes(~std::uint64_t{0})},
      {"<f2", bytes(static_cast<_Float16>(-1.5f)), bytes(static_cast<_Float16>(2.5f))},
      {"<f4", bytes(-1.5f), bytes(2.5f)},
      {"<f8", bytes(-1e300), bytes(1e300)},
      {"<c8", two(1.0f), two(-2.0f)},
      {"<c16", two(1.0), two(-2.0)},
      {"<M8[s]", bytes(std::int64_t{0}), bytes(std::int64_t{1} << 30)},
      {"<m8[s]", bytes(std::int64_t{-4}), bytes(std::int64_t{4})},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.dtype);
    MemoryData data;
    data.declare("a", each.dtype, {"t", "y", "x"}, {1, 1, 2}, {1, 1, 2});
    const auto view = parse_view(data.dataset(), R"({"window": {"t": 1}, "variables": ["a"]})");
    const Preview preview(*view, 0);
    const std::string both = each.low + each.high;
    const Canvas canvas = preview.draw({std::as_bytes(std::span(both))});
    EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 0), Preview::kFirstColour);
    EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 1), 255);
  }
}

TEST(Preview, MissingTimesAndHalfFloatsOfGpus) {
  MemoryData data;
  data.declare("a", "<M8[ns]", {"t", "y", "x"}, {1, 1, 2}, {1, 1, 2}).declare("b", "<f4", {"t", "y", "x"}, {1, 1, 2}, {1, 1, 2});
  const auto times = parse_view(data.dataset(), R"({"window": {"t": 1}, "variables": ["a"]})");
  const Preview preview(*times, 0);
  Canvas canvas = preview.draw(tensors(std::vector<std::int64_t>{INT64_MIN, 5}));
  EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 0), Preview::kMissing);
  EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 1), Preview::kFirstColour + 120);
  const auto halves = parse_view(data.dataset(), R"({"window": {"t": 1}, "variables": ["b"], "dtype": "bfloat16", "formats": ["png"]})");
  const Preview other(*halves, 0);
  canvas = other.draw(tensors(std::vector<std::uint16_t>{0x3f80, 0xc000}));  // 1 and -2
  EXPECT_EQ(colour(other, canvas, 0, 0, 0, 0), 255);
  EXPECT_EQ(colour(other, canvas, 0, 0, 0, 1), Preview::kFirstColour);
}

TEST(Preview, FewDimensionsAreOnePicture) {
  MemoryData data;
  data.declare("a", "<f8", {"t", "x"}, {6, 4}, {1, 4}).declare("b", "<f8", {"t"}, {6}, {6});
  const auto view = parse_view(data.dataset(), R"({"window": {"t": 1}, "batch": 3, "select": {"t": {"from": "#0", "to": "#5"}},
      "tensors": {"p": {"variables": ["a"], "stack": "c", "dims": ["c"]}, "q": {"variables": ["b"]}}})");
  const Preview preview(*view, 0);
  ASSERT_EQ(preview.sheets().size(), 2u);
  EXPECT_EQ(preview.sheets()[0].lines, 3);
  EXPECT_EQ(preview.sheets()[0].columns, 4);
  EXPECT_EQ(preview.sheets()[0].maps, 1);
  EXPECT_EQ(preview.sheets()[1].lines, 3);
  EXPECT_EQ(preview.sheets()[1].columns, 1);
  // The last batch has two samples, and is no larger than the others.
  const Preview last(*view, 1);
  EXPECT_EQ(last.sheets()[0].lines, 2);
}

TEST(Preview, ManyChannelsAreCutOffAndSaid) {
  MemoryData data;
  data.declare("a", "<f4", {"t", "level", "y", "x"}, {2, 500, 2, 2}, {1, 500, 2, 2});
  const auto view = parse_view(data.dataset(), R"({"window": {"t": 1}, "tensors": {"x": {"variables": ["a"]}, "y": {"variables": ["a"]}}})");
  const Preview preview(*view, 0);
  EXPECT_EQ(preview.rows().size(), static_cast<std::size_t>(Preview::kMostRows));
  EXPECT_EQ(preview.rows()[5].label, "level 5");
  EXPECT_NE(preview.sheets()[0].title.find("96 of 500 are shown"), std::string::npos) << preview.sheets()[0].title;
  EXPECT_NE(preview.sheets()[1].title.find("0 of 500 are shown"), std::string::npos);
  EXPECT_LT(preview.width() * preview.height(), 40'000'000);
}

TEST(Preview, AnEmptyTensorHasATitle) {
  MemoryData data;
  data.declare("a", "<f4", {"t", "y", "x"}, {2, 0, 2}, {1, 1, 2});
  const auto empty = parse_view(data.dataset(), R"({"window": {"t": 1}, "variables": ["a"]})");
  const Preview preview(*empty, 0);
  EXPECT_TRUE(preview.rows().empty());
  EXPECT_NE(preview.sheets()[0].title.find("empty"), std::string::npos);
  EXPECT_GT(preview.draw({{}}).height(), 0);
}

// matplotlib's viridis at its ends and its middle.
TEST(Preview, ThePaletteIsViridis) {
  const Palette& palette = preview_palette();
  EXPECT_EQ(palette[Preview::kFirstColour], (std::array<std::uint8_t, 3>{68, 1, 84}));
  EXPECT_EQ(palette[255], (std::array<std::uint8_t, 3>{253, 231, 37}));
  EXPECT_NEAR(palette[136][1], 145, 3);
}

}  // namespace
}  // namespace batchfs
