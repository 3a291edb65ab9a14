#include "engine/view/starter.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace starter_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kLimit = 256 << 20;

MemoryData weather() {
  MemoryData data;
  data.declare("orography", "<f4", {"lat", "lon"}, {721, 1440}, {721, 1440})
      .declare("t", "<f4", {"lat", "time", "lon"}, {721, 100, 1440}, {721, 1, 1440})
      .declare("label", "|S20", {"time"}, {100}, {100})
      .declare("q", "<f4", {"time", "lat"}, {100, 721}, {1, 721});
  return data;
}

TEST(StarterView, IsAViewOfItsDataset) {
  const auto dataset = weather().dataset();
  const Json starter = starter_view(*dataset, "mine").view;
  EXPECT_EQ(starter["name"], "mine");
  EXPECT_EQ(starter["variables"], Json::array({"q", "t"}));  // not the names, which no tensor holds
  EXPECT_EQ(starter["window"], parse_json(R"({"time": 1})", ""));
  EXPECT_EQ(starter["batch"]["size"], 32);
  const auto view = parse_view(dataset, starter.dump());
  EXPECT_EQ(view->name(), "mine");
  EXPECT_EQ(view->samples(), 100);
}

TEST(StarterView, SamplesAlongTheFirstDimensionWithoutTime) {
  MemoryData data;
  data.declare("image", "|u1", {"item", "y", "x"}, {7, 4, 4}, {1, 4, 4});
  const Json starter = starter_view(*data.dataset(), "v").view;
  EXPECT_EQ(starter["window"], parse_json(R"({"item": 1})", ""));
  EXPECT_EQ(starter["batch"]["size"], 7);
}

TEST(StarterView, HasTheSpacingOfRegularTimes) {
  const auto with = [](const std::vector<std::int32_t>& hours) {
    MemoryData data;
    data.declare("t", "<f4", {"time"}, {static_cast<std::int64_t>(hours.size())}, {1})
        .index("time", "<i4", hours, {{"units", "hours since 2000-01-01"}});
    const auto dataset = data.dataset();
    const Json view = starter_view(*dataset, "v").view;
    parse_view(dataset, view.dump());
    return view.value("samples", Json());
  };
  EXPECT_EQ(with({0, 6, 12}), parse_json(R"({"spacing": {"time": "6h"}})", ""));
  EXPECT_EQ(with({0, 6, 18}), Json());
  EXPECT_EQ(with({0}), Json());
}

TEST(StarterView, OfNothingSaysWhatToDo) {
  MemoryData data;
  data.index<double>("x", "<f8", {1, 2})
      .declare("scalar", "<f4", {}, {}, {})
      .declare("s", "|S4", {"x"}, {2}, {2});
  const Error error = error_of([&] { starter_view(*data.dataset(), "v"); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_THAT(error.why(), HasSubstr("no variable to make batches of"));
}

/// The bytes of a full batch of a starter view.
double batch_bytes(const std::shared_ptr<const Dataset>& dataset, const Json& starter) {
  const auto view = parse_view(dataset, starter.dump());
  double bytes = 0;
  for (const TensorSpec& tensor : view->tensors())
    bytes += static_cast<double>(element_count(tensor.shape)) * tensor.type.itemsize;
  return bytes;
}

TEST(StarterView, ALargeBatchHasFewerSamples) {
  MemoryData data;  // 4.2 MB a sample and variable
  for (const char* name : {"a", "b", "c"})
    data.declare(name, "<f8", {"time", "lat", "lon"}, {1000, 721, 1440}, {1, 721, 1440});
  const auto dataset = data.dataset();
  const StarterView starter = starter_view(*dataset, "v");
  EXPECT_EQ(starter.view["batch"]["size"], 16);
  EXPECT_EQ(starter.view["variables"].size(), 3u);
  EXPECT_THAT(starter.reduced, ElementsAre("16 samples in a batch instead of 32"));
  EXPECT_EQ(starter.full_bytes, 32.0 * 3 * 721 * 1440 * 4);  // doubles become float32
  EXPECT_LE(batch_bytes(dataset, starter.view), kLimit);
}

TEST(StarterView, ThenFewerVariables) {
  MemoryData data;  // as ERA5: fields on levels beside fields of the surface
  for (const char* name : {"q", "t", "z"})
    data.declare(name, "<f4", {"time", "level", "lat", "lon"}, {1000, 37, 721, 1440},
                 {1, 37, 721, 1440});
  for (const char* name : {"t2m", "u10"})
    data.declare(name, "<f4", {"time", "lat", "lon"}, {1000, 721, 1440}, {1, 721, 1440});
  const auto dataset = data.dataset();
  const StarterView starter = starter_view(*dataset, "v");
  EXPECT_EQ(starter.view["variables"], Json::array({"t2m", "u10"}));
  EXPECT_THAT(starter.reduced, ElementsAre("2 of 5 variables"));
  EXPECT_LE(batch_bytes(dataset, starter.view), kLimit);
}

TEST(StarterView, ThenAWindowAlongSpace) {
  MemoryData data;  // 1.6 GB a sample
  data.declare("radar", "<f4", {"time", "y", "x"}, {10, 20000, 20000}, {1, 1000, 1000});
  const auto dataset = data.dataset();
  const StarterView starter = starter_view(*dataset, "v");
  EXPECT_EQ(starter.view["window"], parse_json(R"({"time": 1, "y": 4096, "x": 4096})", ""));
  EXPECT_THAT(starter.reduced, ElementsAre("4 samples in a batch instead of 10",
                                           "a window of 4096 along y instead of all 20000",
                                           "a window of 4096 along x instead of all 20000"));
  EXPECT_LE(batch_bytes(dataset, starter.view), kLimit);
}

TEST(StarterView, ThenAWindowAlongTheRest) {
  MemoryData data;
  data.declare("a", "<f4", {"time", "member", "y", "x"}, {10, 1000000000, 20, 20},
               {1, 1000, 20, 20});
  const auto dataset = data.dataset();
  const StarterView starter = starter_view(*dataset, "v");
  EXPECT_EQ(starter.view["window"], parse_json(R"({"time": 1, "member": 32768})", ""));
  EXPECT_LE(batch_bytes(dataset, starter.view), kLimit);
}

}  // namespace starter_test
}  // namespace batchfs
