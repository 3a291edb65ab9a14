#include "tools/cli/groups.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace groups_test {

using testing::HasSubstr;

struct GroupsTest : testing::Test {
  GroupsTest() {
    data.hierarchy.groups[""] = {};
    for (const char* group : {"a", "a/b"}) data.hierarchy.groups[group] = Group{group};
    data.declare("a/t", "<i4", {"x"}, {3}, {3}).declare("a/b/t", "<i4", {"x"}, {5}, {5});
    data.declare("y", "<i4", {"x"}, {7}, {7});
    opened.store = data.store;
    opened.hierarchy = std::make_shared<const Hierarchy>(data.hierarchy);
  }
  std::string refusal(const std::string& typed) const {
    const Error error = error_of([&] { find_group(*opened.hierarchy, typed, "--group"); });
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_EQ(error.where(), "--group");
    return error.why();
  }
  MemoryData data;
  OpenedStore opened;
};

TEST_F(GroupsTest, AreFoundHoweverTheirSlashesAreTyped) {
  for (const char* typed : {"a/b", "/a/b", "a/b/", "//a/b//"})
    EXPECT_EQ(find_group(*opened.hierarchy, typed, ""), "a/b") << typed;
  EXPECT_EQ(find_group(*opened.hierarchy, "/", ""), "");
  EXPECT_THAT(refusal("a/c"), HasSubstr("there is no group 'a/c', did you mean 'a/b'?"));
  EXPECT_THAT(refusal("y"), HasSubstr("'y' is an array; its group is '/'"));
  EXPECT_THAT(refusal("a/t"), HasSubstr("its group is 'a'"));
  EXPECT_THAT(refusal("../a"), HasSubstr("there is no group '../a'"));
}

TEST_F(GroupsTest, HoldWhatIsBelowThem) {
  EXPECT_TRUE(is_in_group("a/b/t", "a"));
  EXPECT_TRUE(is_in_group("a", "a"));
  EXPECT_TRUE(is_in_group("x", ""));
  EXPECT_FALSE(is_in_group("ab", "a"));
}

TEST_F(GroupsTest, ADatasetIsMadeOnceForAllOfItsViews) {
  opened.group = "a";
  GroupDatasets datasets(opened);
  const auto b = datasets.of_view(R"({"group": "/a/b", /* of b */ "window": {"x": 1}})", "v");
  EXPECT_EQ(b->path(), "a/b");
  EXPECT_EQ(b->dim_size("x"), 5);
  EXPECT_EQ(datasets.of_view(R"({"group": "a/b"})", "w"), b);
  EXPECT_EQ(datasets.of_view("{}", "v"), datasets.chosen());
  EXPECT_EQ(datasets.chosen()->dim_size("x"), 3);
  EXPECT_EQ(datasets.of_view(R"({"group": "/"})", "v")->dim_size("x"), 7);
  EXPECT_EQ(datasets.of_view(R"({"group": 3})", "v"), datasets.chosen()) << "refused elsewhere";
  const Error error = error_of([&] { datasets.of_view(R"({"group": "c"})", "the view"); });
  EXPECT_THAT(error.why(), HasSubstr("group: there is no group 'c'"));
  EXPECT_EQ(error.where(), "the view");
}

}  // namespace groups_test
}  // namespace batchfs
