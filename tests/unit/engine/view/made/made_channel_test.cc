#include "engine/view/made/made_channel.h"

#include <cmath>
#include <numbers>

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace made_channel_test {

using testing::Each;
using testing::ElementsAre;

struct Channel : testing::Test {
  Channel() {
    data.declare("a", "<f4", {"time", "lat", "lon"}, {2, 3, 4}, {2, 3, 4})
        .index<std::int64_t>("time", "<i8", {0, 6}, {{"units", "hours since 2020-01-01"}})
        .declare("b", "<f4", {"time", "step", "lat", "lon"}, {2, 3, 3, 4}, {2, 3, 3, 4})
        .index<std::int64_t>("step", "<i8", {0, 6, 12}, {{"units", "hours"}})
        .index<double>("lat", "<f8", {90, 0, -60}, {{"units", "degrees_north"}})
        .index<double>("lon", "<f8", {0, 90, 180, 270}, {{"units", "degrees_east"}});
  }
  MadeChannel channel(const std::string& name, const Names& dims = {"time"}) const {
    MadeSpec spec;
    spec.kind = find_made_kind(name);
    spec.name = name;
    spec.path = "p";
    spec.times.dims = dims;
    return MadeChannel(spec, *data.dataset());
  }
  static Converter converter(const MadeChannel& channel) {
    return Converter(channel.variable().cf, float32());
  }
  MemoryData data;
};

TEST_F(Channel, HasTheDimensionsOfItsFormula) {
  EXPECT_THAT(channel("cos_latitude").variable().dims, ElementsAre("lat"));
  EXPECT_THAT(channel("cos_julian_day").variable().dims, ElementsAre("time"));
  EXPECT_THAT(channel("sin_local_time").variable().dims, ElementsAre("time", "lon"));
  EXPECT_THAT(channel("cos_zenith").variable().dims, ElementsAre("time", "lat", "lon"));
}

TEST_F(Channel, IsRepeatedNearAndFar) {
  // 3 latitudes, each 4 times side by side, and all of it twice.
  const MadeChannel made = channel("sin_latitude");
  std::vector<float> out(24, -9);
  const Repeat repeat{{2, 4}, {48, 4}};
  made.write({{0}, {3}}, converter(made), reinterpret_cast<std::byte*>(out.data()), {16}, &repeat);
  const auto lowest = static_cast<float>(-std::sqrt(3.0) / 2);
  for (std::size_t i = 0; i < out.size(); ++i)
    EXPECT_FLOAT_EQ(out[i], i % 12 < 4 ? 1.0f : i % 12 < 8 ? 0.0f : lowest) << i;
}

TEST_F(Channel, OfTimeIsOneNumber) {
  const MadeChannel made = channel("cos_julian_day");
  std::vector<float> out(12, -9);
  const Repeat repeat{{3, 4}, {16, 4}};
  made.write({{1}, {1}}, converter(made), reinterpret_cast<std::byte*>(out.data()), {0}, &repeat);
  EXPECT_THAT(out, Each(static_cast<float>(std::cos(2 * std::numbers::pi * 0.25 / 365.25))));
}

TEST_F(Channel, OfAForecastIsThatOfItsValidTime) {
  // The start at 6 UTC six hours later is the start at 0 UTC twelve hours later.
  const MadeChannel made = channel("cos_zenith", {"time", "step"});
  EXPECT_THAT(made.variable().dims, ElementsAre("time", "step", "lat", "lon"));
  std::vector<float> out(2 * 3 * 4, -9), alone(4, -9);
  made.write({{0, 0, 1, 0}, {2, 3, 1, 4}}, converter(made),
             reinterpret_cast<std::byte*>(out.data()), {48, 16, 16, 4}, nullptr);
  const auto lons = [&](std::size_t start, std::size_t step) {
    const auto first = out.begin() + static_cast<std::ptrdiff_t>((start * 3 + step) * 4);
    return std::vector<float>(first, first + 4);
  };
  EXPECT_EQ(lons(1, 0), lons(0, 1));
  EXPECT_EQ(lons(1, 1), lons(0, 2));
  EXPECT_LT(lons(0, 0)[0], -0.9);  // midnight, and noon
  EXPECT_GT(lons(0, 2)[0], 0.9);
  const MadeChannel starts = channel("cos_zenith");
  starts.write({{1, 1, 0}, {1, 1, 4}}, converter(made), reinterpret_cast<std::byte*>(alone.data()),
               {0, 0, 4}, nullptr);
  EXPECT_EQ(alone, lons(1, 0));
}

TEST_F(Channel, GoesToAnyStrides) {
  // Longitude slower than latitude, of part of both.
  const MadeChannel made = channel("insolation");
  const Converter to = converter(made);
  std::vector<float> plain(6, -9), turned(6, -9);
  made.write({{1, 0, 1}, {1, 2, 3}}, to, reinterpret_cast<std::byte*>(plain.data()), {24, 12, 4},
             nullptr);
  made.write({{1, 0, 1}, {1, 2, 3}}, to, reinterpret_cast<std::byte*>(turned.data()), {24, 4, 8},
             nullptr);
  for (std::size_t lat = 0; lat < 2; ++lat)
    for (std::size_t lon = 0; lon < 3; ++lon)
      EXPECT_EQ(plain[lat * 3 + lon], turned[lon * 2 + lat]);
  EXPECT_GT(plain[3], 0.8);  // on the equator at 90 degrees east, at 6 UTC
}

}  // namespace made_channel_test
}  // namespace batchfs
