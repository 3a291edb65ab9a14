#include <gmock/gmock.h>

#include "engine/dataset/joined/axis_join.h"
#include "tests/unit/engine/dataset/memory_data.h"
#include "tools/cli/groups.h"

namespace batchfs {
namespace joined_groups_test {

using testing::HasSubstr;

OpenedStore opened_of(MemoryData data) {
  OpenedStore opened;
  opened.store = data.store;
  opened.hierarchy = std::make_shared<const Hierarchy>(data.hierarchy);
  return opened;
}

struct JoinedGroupsTest : testing::Test {
  JoinedGroupsTest() {
    MemoryData first = MemoryData()
                           .index<std::int32_t>("x", "<i4", {1, 2, 3})
                           .declare("t", "<f4", {"x"}, {3}, {3});
    first.hierarchy.groups["fine"] = Group{"fine"};
    first.declare("fine/u", "<f4", {"y"}, {5}, {5});
    opened = opened_of(first);
    opened.others["rain"] =
        std::make_shared<OpenedStore>(opened_of(MemoryData()
                                                    .index<std::int32_t>("x", "<i4", {3, 1})
                                                    .declare("tp", "<f4", {"x"}, {2}, {2})));
  }
  std::shared_ptr<const Dataset> of(const char* view) {
    return GroupDatasets(opened).of_view(view, "the view");
  }
  OpenedStore opened;
};

TEST_F(JoinedGroupsTest, AreOfStoresThatTheCommandNames) {
  const auto dataset = of(R"({"variables": ["t", "r:tp", "g:u", "a:t"], "sources": {
    "a": {}, "r": {"store": "rain", "join": {"x": "exact"}}, "g": {"group": "fine"}}})");
  ASSERT_NE(dataset->variable("r:tp").join_along(0), nullptr);
  EXPECT_EQ(dataset->variable("r:tp").join_along(0)->positions()[2], 0);
  EXPECT_EQ(dataset->dim_size("y"), 5);
  EXPECT_EQ(dataset->variable("a:t").dims, dataset->variable("t").dims);
}

TEST_F(JoinedGroupsTest, SayWhatIsMissing) {
  const Error store = error_of(
      [&] { of(R"({"variables": ["r:tp"], "sources": {"a": {}, "r": {"store": "rainy"}}})"); });
  EXPECT_EQ(store.where(), "the view");
  EXPECT_THAT(store.why(), HasSubstr("no store 'rainy' is given, did you mean 'rain'?; add --store "
                                     "rainy=URL to the command"));
  const Error group = error_of(
      [&] { of(R"({"variables": ["r:tp"], "sources": {"a": {}, "r": {"group": "coarse"}}})"); });
  EXPECT_THAT(group.why(), HasSubstr("sources.r: "));
}

TEST_F(JoinedGroupsTest, AnyStoreThatChangesIsAnotherSnapshot) {
  const std::string before = opened.snapshot_id();
  Hierarchy changed = *opened.others["rain"]->hierarchy;
  changed.snapshot_id = "other";
  opened.others["rain"]->hierarchy = std::make_shared<const Hierarchy>(std::move(changed));
  EXPECT_NE(opened.snapshot_id(), before);
  EXPECT_EQ(opened.stores().size(), 2U);
}

}  // namespace joined_groups_test
}  // namespace batchfs
