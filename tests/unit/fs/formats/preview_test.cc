#include "fs/formats/preview.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "engine/view/geometry.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace preview_test {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T>
std::vector<std::span<const std::byte>> tensors(const std::vector<T>& values) {
  return {std::as_bytes(std::span(values))};
}

/// The colour in the middle of an element of a map.
Pixel colour(const Preview& preview, const Canvas& canvas, std::int64_t row, std::int64_t map,
             std::int64_t line, std::int64_t column) {
  const Preview::Row& at = preview.rows()[static_cast<std::size_t>(row)];
  const Preview::Sheet& sheet = preview.sheets()[at.tensor];
  const std::int64_t left = 8 + map * (sheet.width() + 6),
                     top = at.y + (at.label.empty() ? 0 : Canvas::kLineHeight);
  return canvas.at(left + column * sheet.enlarge + sheet.enlarge / 2,
                   top + line * sheet.enlarge + sheet.enlarge / 2);
}

TEST(Preview, ColoursGoFromTheLeastToTheMostOfAChannel) {
  MemoryData data;
  data.declare("a", "<f4", {"t", "y", "x"}, {4, 2, 3}, {1, 2, 3})
      .declare("b", "<f4", {"t", "y", "x"}, {4, 2, 3}, {1, 2, 3});
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
  const std::vector<float> values = {0, 1, 2, 3, 4,  5,    7, 7, 7,        7, 7, 7,
                                     6, 7, 8, 9, 10, kNaN, 7, 7, INFINITY, 7, 7, 7};
  const Canvas canvas = preview.draw(tensors(values));
  EXPECT_EQ(canvas.width(), preview.width());
  EXPECT_EQ(canvas.height(), preview.height());
  const Pixel first = Preview::kFirstColour;
  // a: 0 to 10 over both samples; 119 steps between the first colour and the last.
  EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 0), first);
  EXPECT_EQ(colour(preview, canvas, 0, 0, 1, 2), first + 60);
  EXPECT_EQ(colour(preview, canvas, 0, 1, 0, 0), first + 71);
  EXPECT_EQ(colour(preview, canvas, 0, 1, 1, 1), Preview::kLastColour);
  EXPECT_EQ(colour(preview, canvas, 0, 1, 1, 2), Preview::kMissing);
  // b: nothing but one value, and one that is not finite.
  EXPECT_EQ(colour(preview, canvas, 1, 0, 0, 0), first + 60);
  EXPECT_EQ(colour(preview, canvas, 1, 1, 0, 2), Preview::kMissing);
}

TEST(Preview, NorthIsUp) {
  for (const bool north_first : {false, true}) {
    MemoryData data;
    data.declare("a", "<f4", {"t", "latitude", "x"}, {2, 3, 2}, {1, 3, 2});
    if (north_first)
      data.index<double>("latitude", "<f8", {60, 50, 40});
    else
      data.index<double>("latitude", "<f8", {40, 50, 60});
    const auto view = parse_view(data.dataset(), R"({"window": {"t": 1}, "variables": ["a"]})");
    const Preview preview(*view, 0);
    const Canvas canvas = preview.draw(tensors(std::vector<float>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(colour(preview, canvas, 0, 0, north_first ? 0 : 2, 0), Preview::kFirstColour);
    EXPECT_EQ(colour(preview, canvas, 0, 0, north_first ? 2 : 0, 1), Preview::kLastColour);
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
    for (int x = 498; x < 500; ++x)
      values[static_cast<std::size_t>(y * 500 + x)] = 30;  // the last pixel has two columns
  values[static_cast<std::size_t>(299 * 500)] = 90;        // a ninth of its pixel: 10
  const Canvas canvas = preview.draw(tensors(values));
  EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 166), Preview::kLastColour);
  EXPECT_EQ(colour(preview, canvas, 0, 0, 99, 0), Preview::kFirstColour + 40);
  EXPECT_EQ(colour(preview, canvas, 0, 0, 50, 50), Preview::kFirstColour);
}

TEST(Preview, EveryNumberHasAPicture) {
  struct Case {
    const char* dtype;
    std::string low, high;
  };
  const auto bytes = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
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
    const Pixel low = colour(preview, canvas, 0, 0, 0, 0),
                high = colour(preview, canvas, 0, 0, 0, 1);
    constexpr Pixel kZero = (Preview::kFirstDiverging + Preview::kLastDiverging) / 2;
    if (low < Preview::kFirstDiverging) {
      EXPECT_EQ(low, Preview::kFirstColour);
      EXPECT_EQ(high, Preview::kLastColour);
    } else {
      EXPECT_LT(low, kZero);
      EXPECT_GT(high, kZero);
    }
  }
}

TEST(Preview, MissingTimesAndHalfFloatsOfGpus) {
  MemoryData data;
  data.declare("a", "<M8[ns]", {"t", "y", "x"}, {1, 1, 2}, {1, 1, 2})
      .declare("b", "<f4", {"t", "y", "x"}, {1, 1, 2}, {1, 1, 2});
  const auto times = parse_view(data.dataset(), R"({"window": {"t": 1}, "variables": ["a"]})");
  const Preview preview(*times, 0);
  Canvas canvas = preview.draw(tensors(std::vector<std::int64_t>{INT64_MIN, 5}));
  EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 0), Preview::kMissing);
  EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 1), Preview::kFirstColour + 60);
  const auto halves = parse_view(
      data.dataset(),
      R"({"window": {"t": 1}, "variables": ["b"], "dtype": "bfloat16", "formats": ["png"]})");
  const Preview other(*halves, 0);
  canvas = other.draw(tensors(std::vector<std::uint16_t>{0x3f80, 0xc000}));  // 1 and -2
  EXPECT_EQ(colour(other, canvas, 0, 0, 0, 0), Preview::kFirstDiverging + 89);
  EXPECT_EQ(colour(other, canvas, 0, 0, 0, 1), Preview::kFirstDiverging);
}

TEST(Preview, FewDimensionsAreOnePicture) {
  MemoryData data;
  data.declare("a", "<f8", {"t", "x"}, {6, 4}, {1, 4}).declare("b", "<f8", {"t"}, {6}, {6});
  const auto view =
      parse_view(data.dataset(),
                 R"({"window": {"t": 1}, "batch": 3, "select": {"t": {"from": "#0", "to": "#5"}},
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
  const auto view = parse_view(
      data.dataset(),
      R"({"window": {"t": 1}, "tensors": {"x": {"variables": ["a"]}, "y": {"variables": ["a"]}}})");
  const Preview preview(*view, 0);
  EXPECT_EQ(preview.rows().size(), static_cast<std::size_t>(Preview::kMaxRows));
  EXPECT_EQ(preview.rows()[5].label, "level 5");
  EXPECT_NE(preview.sheets()[0].title.find("96 of 500 are shown"), std::string::npos)
      << preview.sheets()[0].title;
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

TEST(Preview, ChannelsMayComeLast) {
  MemoryData data;
  data.declare("a", "<f4", {"sample", "height", "width", "channel"}, {2, 40, 50, 5},
               {1, 40, 50, 5});
  const auto view = parse_view(data.dataset(), R"({"window": {"sample": 1}, "variables": ["a"]})");
  const Preview preview(*view, 0);
  ASSERT_EQ(preview.rows().size(), 5u);
  EXPECT_EQ(preview.rows()[3].label, "channel 3");
  const Preview::Sheet& sheet = preview.sheets()[0];
  EXPECT_EQ(sheet.lines, 40);
  EXPECT_EQ(sheet.columns, 50);
  EXPECT_LT(preview.height(), 5 * 220);
  std::vector<float> values(40 * 50 * 5, 0);
  values[(7 * 50 + 11) * 5 + 3] = 1;
  const Canvas canvas = preview.draw(tensors(values));
  EXPECT_EQ(colour(preview, canvas, 3, 0, 7, 11), Preview::kLastColour);
  EXPECT_EQ(colour(preview, canvas, 3, 0, 11, 7), Preview::kFirstColour);
}

TEST(Preview, RedGreenAndBlueAreColours) {
  for (const bool last : {true, false}) {
    MemoryData data;
    if (last)
      data.declare("a", "|u1", {"s", "y", "x", "c"}, {2, 2, 3, 3}, {1, 2, 3, 3});
    else
      data.declare("a", "|u1", {"s", "c", "y", "x"}, {2, 3, 2, 3}, {1, 3, 2, 3});
    const auto view = parse_view(data.dataset(), R"({"window": {"s": 1}, "variables": ["a"]})");
    const Preview preview(*view, 0);
    ASSERT_EQ(preview.rows().size(), 1u);
    EXPECT_EQ(preview.colours(), PngColours::full);
    std::vector<std::uint8_t> values(18);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(10 * i);
    const Canvas canvas = preview.draw(tensors(values));
    EXPECT_EQ(colour(preview, canvas, 0, 0, 1, 2),
              last ? true_colour(150, 160, 170) : true_colour(50, 110, 170));
    EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 1),
              last ? true_colour(30, 40, 50) : true_colour(10, 70, 130));
  }
}

TEST(Preview, BandsHaveARowInTrueColoursBeforeTheirOwn) {
  MemoryData data;
  for (const char* name : {"b02", "b03", "b04", "b08"})
    data.declare(name, "<f4", {"t", "y", "x"}, {4, 2, 3}, {1, 2, 3});
  const auto view = parse_view(data.dataset(), R"({"window": {"t": 1}, "batch": 1,
      "tensors": {"x": {"variables": ["b02", "b03", "b04", "b08"], "stack": "channel",
                        "dims": ["channel", "y", "x"]}}})");
  const Preview preview(*view, 0);
  EXPECT_EQ(preview.colours(), PngColours::full);
  ASSERT_EQ(preview.rows().size(), 5u);
  EXPECT_EQ(preview.rows()[0].label, "red b04_0, green b03_0, blue b02_0");
  EXPECT_EQ(preview.rows()[1].label, "b02_0");
  const std::vector<float> values = {0,  1,  2,  3,  4,  kNaN, 6,   7,   8,   9,   10,  kNaN,
                                     12, 13, 14, 15, 17, kNaN, 100, 200, 300, 400, 500, 600};
  const Canvas canvas = preview.draw(tensors(values));
  // From 0 to 15: one value of 15 is above that.
  EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 0), true_colour(204, 102, 0));
  EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 1), true_colour(221, 119, 17));
  EXPECT_EQ(colour(preview, canvas, 0, 0, 1, 1), true_colour(255, 170, 68));
  EXPECT_EQ(colour(preview, canvas, 0, 0, 1, 2), Preview::kMissing);
  EXPECT_EQ(colour(preview, canvas, 1, 0, 0, 0), Preview::kFirstColour);
  EXPECT_EQ(colour(preview, canvas, 4, 0, 1, 2), Preview::kLastColour);
}

TEST(Preview, ValuesAroundZeroHaveAScaleAroundZero) {
  MemoryData data;
  data.declare("a", "<f4", {"t", "y", "x"}, {1, 1, 3}, {1, 1, 3});
  const auto view = parse_view(data.dataset(), R"({"window": {"t": 1}, "variables": ["a"]})");
  const Preview preview(*view, 0);
  Canvas canvas = preview.draw(tensors(std::vector<float>{-2, 0, 4}));
  EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 1), 195u);  // white
  EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 2), Preview::kLastDiverging);
  EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 0), 166u);             // a quarter of the way
  canvas = preview.draw(tensors(std::vector<float>{-0.1f, 0, 4}));  // not around zero
  EXPECT_EQ(colour(preview, canvas, 0, 0, 0, 0), Preview::kFirstColour);
}

TEST(Preview, UnitsAreWritten) {
  MemoryData data;
  data.declare("a", "<f4", {"t", "y", "x"}, {2, 3, 2}, {1, 3, 2}, {{"units", "K"}})
      .declare("b", "<f4", {"t", "y", "x"}, {2, 3, 2}, {1, 3, 2}, {{"units", "m s-1"}});
  const auto view =
      parse_view(data.dataset(), R"({"window": {"t": 1}, "tensors": {"one": {"variables": ["a"]},
      "two": {"variables": ["a", "b"], "stack": "channel", "dims": ["channel", "y", "x"]}}})");
  const Preview preview(*view, 0);
  EXPECT_TRUE(preview.sheets()[0].title.ends_with(" [K]")) << preview.sheets()[0].title;
  ASSERT_EQ(preview.rows().size(), 3u);
  EXPECT_EQ(preview.rows()[2].label.substr(0, 1), "b");
  EXPECT_TRUE(preview.rows()[2].label.ends_with(" [m s-1]")) << preview.rows()[2].label;
  const auto normalized =
      parse_view(data.dataset(), R"({"window": {"t": 1}, "variables": ["a"], "normalize":
      {"method": "zscore", "statistics": {"a": {"mean": 1, "std": 2}}}})");
  EXPECT_FALSE(Preview(*normalized, 0).sheets()[0].title.ends_with("]"));
}

TEST(Preview, DatesOfSamplesAreWritten) {
  MemoryData data;
  data.declare("a", "<f4", {"time", "y", "x"}, {3, 20, 20}, {1, 20, 20});
  data.index<std::int64_t>("time", "<i8", {0, 6, 12}, {{"units", "hours since 2000-01-01"}});
  const auto view =
      parse_view(data.dataset(), R"({"window": {"time": 1}, "batch": 3, "variables": ["a"]})");
  const auto captions = sample_captions(*view, 0, 0, 100);
  EXPECT_EQ(captions,
            (std::vector<std::string>{"2000-01-01", "2000-01-01T06:00", "2000-01-01T12:00"}));
  const Preview preview(*view, 0);
  const std::vector<float> values(1200, 1);
  const Canvas with = preview.draw(tensors(values), captions),
               without = preview.draw(tensors(values));
  const std::int64_t y = preview.sheets()[0].captions_y;
  const auto ink = [&](const Canvas& canvas) {
    std::int64_t count = 0;
    for (std::int64_t j = y; j < y + Canvas::kLineHeight; ++j)
      for (std::int64_t i = 0; i < canvas.width(); ++i) count += canvas.at(i, j) == Preview::kInk;
    return count;
  };
  EXPECT_GT(ink(with), 100);
  EXPECT_EQ(ink(without), 0);
}

// matplotlib's viridis at its ends and its middle.
TEST(Preview, ThePaletteIsViridis) {
  const Palette& palette = preview_palette();
  EXPECT_EQ(palette[Preview::kFirstColour], (std::array<std::uint8_t, 3>{68, 1, 84}));
  EXPECT_EQ(palette[Preview::kLastColour], (std::array<std::uint8_t, 3>{253, 231, 37}));
  EXPECT_NEAR(palette[76][1], 145, 3);
  // ColorBrewer's RdBu, the other way round.
  EXPECT_EQ(palette[Preview::kFirstDiverging], (std::array<std::uint8_t, 3>{5, 48, 97}));
  EXPECT_EQ(palette[195], (std::array<std::uint8_t, 3>{247, 247, 247}));
  EXPECT_EQ(palette[Preview::kLastDiverging], (std::array<std::uint8_t, 3>{103, 0, 31}));
}

}  // namespace preview_test
}  // namespace batchfs
