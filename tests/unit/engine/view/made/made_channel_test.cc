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
        .index<double>("lat", "<f8", {90, 0, -60}, {{"units", "degrees_north"}})
        .index<double>("lon", "<f8", {0, 90, 180, 270}, {{"units", "degrees_east"}});
  }
  MadeChannel channel(const std::string& name) const {
    MadeSpec spec;
    spec.kind = find_made_kind(name);
    spec.name = name;
    spec.path = "p";
    return MadeChannel(spec, *data.dataset(), {"time"});
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
