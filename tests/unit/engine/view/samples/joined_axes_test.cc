#include "engine/view/samples/joined_axes.h"

#include <gmock/gmock.h>

#include "engine/dataset/joined/concat_datasets.h"
#include "engine/dataset/joined/join_sources.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace joined_axes_test {

constexpr std::int64_t kHour = 3'600'000'000'000;

MemoryData store(const std::vector<std::int64_t>& hours, const std::string& name) {
  return MemoryData()
      .index<std::int64_t>("time", "<i8", hours, {{"units", "hours since 2000-01-01"}})
      .declare(name, "<f4", {"time"}, {static_cast<std::int64_t>(hours.size())}, {2});
}

struct JoinedAxesTest : testing::Test {
  const std::shared_ptr<const Dataset> dataset =
      join_sources({{"a", "sources.a", store({0, 6, 12, 18}, "t").dataset(), {}, {}},
                    {"b",
                     "sources.b",
                     store({0, 3, 6, 9, 18}, "u").dataset(),
                     {{"time", "time", "join", {}}},
                     {"u"}}});
  const std::map<std::string, Positions> selected{{"time", Positions::range(1, 3)}};
  JoinedAxes axes{selected};
  const TensorDefinition tensor{.name = "u", .variables = {"b:u"}, .path = "tensors.u"};
};

TEST_F(JoinedAxesTest, GiveArrayIndicesOfTheSelection) {
  const Variable& u = dataset->variable("b:u");
  const Positions& along = axes.along(u, 0);
  EXPECT_EQ(along[0], 2);
  EXPECT_EQ(along[1], Positions::kNone);
  EXPECT_EQ(along[2], 4);
  EXPECT_EQ(axes.along(u, 0, 3 * kHour)[0], 3);
  EXPECT_EQ(&axes.along(u, 0), &along) << "made once";
  EXPECT_TRUE(axes.along(dataset->variable("t"), 0).is_range());
}

TEST_F(JoinedAxesTest, KnowWhichWindowsLackALabel) {
  std::vector<Reach::Lacking> lacking;
  axes.add_lacking(tensor, "time", false, *dataset, lacking);
  ASSERT_EQ(lacking.size(), 1U);
  EXPECT_FALSE(lacking[0].touches(0, 1));
  EXPECT_TRUE(lacking[0].touches(0, 2));
  EXPECT_TRUE(lacking[0].touches(1, 1));
  TensorDefinition later = tensor;
  later.durations = {{"time", {}, {Duration{0, 3 * kHour}}, "offsets"}};
  lacking.clear();
  axes.add_lacking(later, "time", false, *dataset, lacking);
  ASSERT_EQ(lacking.size(), 1U);
  EXPECT_EQ(lacking[0].missing->all(), 2);
}

TEST(JoinedAxes, PlaceEachPartOfAConcatenatedVariable) {
  const auto dataset = concat_datasets({{"y0", store({0, 6, 12}, "t").dataset()},
                                        {"y1", store({18, 24}, "t").dataset()},
                                        {"y2", store({36}, "t").dataset()}},
                                       {"time", ConcatRule::Prefer::none, "sources.y"});
  const std::map<std::string, Positions> selected{{"time", Positions::range(1, 4)}};
  JoinedAxes axes(selected);
  const Variable& t = dataset->variable("t");
  VariablePlacement whole;
  whole.variable = 7;
  whole.axes.resize(1);
  whole.axes[0].selected = axes.along(t, 0);
  const std::vector<VariablePlacement> parts = axes.in_parts(t, whole);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[1].variable, 8U);
  constexpr std::int64_t none = Positions::kNone;
  const auto list = [](const AxisPlacement& axis) {
    std::vector<std::int64_t> result;
    for (std::int64_t i = 0; i < axis.selected.size(); ++i) result.push_back(axis.selected[i]);
    return result;
  };
  using testing::ElementsAre;
  EXPECT_THAT(list(parts[0].axes[0]), ElementsAre(1, 2, none, none));
  EXPECT_THAT(list(parts[1].axes[0]), ElementsAre(none, none, 0, 1));
  EXPECT_THAT(list(parts[2].axes[0]), ElementsAre(none, none, none, none));
  EXPECT_TRUE(parts[0].pads && parts[0].is_first);
  EXPECT_FALSE(parts[1].pads || parts[1].is_first);
  EXPECT_FALSE(parts[0].axes[0].gaps().has_gaps()) << "each position is in a part";
}

TEST_F(JoinedAxesTest, SayWhoseLabelsDurationsMean) {
  const JoinedOffsets others = joined_offsets(tensor, "time", *dataset);
  EXPECT_TRUE(others.in_others);
  EXPECT_FALSE(others.in_anchor);
  EXPECT_EQ(fixed_lengths({"time", {}, {Duration{0, kHour}}, "o"}, false),
            std::vector<std::int64_t>{kHour});
  EXPECT_THAT(error_of([] {
                fixed_lengths({"time", {}, {Duration{1, 0}}, "o"}, false);
              }).why(),
              testing::HasSubstr("o: '1mo' has no fixed length"));
  EXPECT_THROW(fixed_lengths({"time", {}, {Duration{0, kHour}}, "o"}, true), Error);
}

}  // namespace joined_axes_test
}  // namespace batchfs
