#include "engine/dataset/joined/join_sources.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace join_sources_test {

using testing::HasSubstr;

MemoryData store(const std::vector<std::int32_t>& x, const std::string& name) {
  return MemoryData()
      .index<std::int32_t>("x", "<i4", x)
      .declare(name, "<f4", {"x"}, {static_cast<std::int64_t>(x.size())}, {2});
}
JoinedSource source(const std::string& name, const MemoryData& data,
                    std::vector<JoinedSource::Join> joins = {}, std::set<std::string> named = {}) {
  return {name, "sources." + name, data.dataset(), std::move(joins), std::move(named)};
}

TEST(JoinSources, NamesVariablesByTheirSource) {
  const auto joined = join_sources({source("a", store({1, 2, 3}, "t"), {}, {"t"}),
                                    source("b", store({3, 2}, "u"), {{"x", "x", "j", {}}}, {"u"})});
  EXPECT_EQ(joined->dim_size("x"), 3);
  EXPECT_NE(joined->find("t"), nullptr);
  EXPECT_EQ(joined->variable("a:t").join_along(0), nullptr);
  const Variable& u = joined->variable("b:u");
  EXPECT_EQ(u.shape, Dims{3});
  ASSERT_NE(u.join_along(0), nullptr);
  EXPECT_EQ(u.join_along(0)->positions()[1], 1);
  EXPECT_EQ(u.join_along(0)->positions()[0], Positions::kNone);
  EXPECT_EQ(joined->index("x").values.shape, Dims{3});
  EXPECT_THAT(error_of([&] { joined->variable("b:v"); }).why(), HasSubstr("did you mean 'b:u'"));
}

TEST(JoinSources, DimensionsOfOneSourceAreAddedAndEqualOnesNeedNoJoin) {
  MemoryData b = store({1, 2, 3}, "u");
  b.index<std::int32_t>("level", "<i4", {500, 850})
      .declare("z", "<f4", {"level", "x"}, {2, 3}, {1, 3});
  const auto joined =
      join_sources({source("a", store({1, 2, 3}, "t")), source("b", b, {}, {"u", "z"})});
  EXPECT_EQ(joined->dim_size("level"), 2);
  EXPECT_NE(joined->index_of("level"), nullptr);
  EXPECT_EQ(joined->variable("b:z").join_along(1), nullptr);
}

TEST(JoinSources, ARepeatedDimensionLiesAsTheOneThatItRepeats) {
  MemoryData b = store({3, 2}, "u");
  b.declare("cov", "<f4", {"x", "x"}, {2, 2}, {2, 2});
  const auto joined = [&](const MemoryData& a, std::vector<JoinedSource::Join> joins) {
    return join_sources({source("a", a), source("b", b, std::move(joins), {"cov"})});
  };
  const auto as_x = joined(store({1, 2, 3}, "t"), {{"x", "x", "j", {}}});
  EXPECT_EQ(as_x->variable("b:cov").dims, (std::vector<std::string>{"x", "x:2"}));
  EXPECT_EQ(as_x->variable("b:cov").shape, (Dims{3, 3}));
  EXPECT_EQ(as_x->variable("b:cov").join_along(1), as_x->variable("b:cov").join_along(0));
  EXPECT_EQ(as_x->original_dim("x:2"), "x");
  EXPECT_EQ(as_x->index("x:2").values.shape, Dims{3});
  const auto equal = joined(store({3, 2}, "t"), {});
  EXPECT_EQ(equal->original_dim("x:2"), "x");
  EXPECT_EQ(equal->variable("b:cov").join_along(1), nullptr);

  MemoryData a;
  a.index<std::int32_t>("y", "<i4", {1, 2, 3}).declare("t", "<f4", {"y", "y"}, {3, 3}, {3, 3});
  EXPECT_EQ(joined(a, {{"x", "y", "j", {}}})->variable("b:cov").dims.back(), "y:2");
  const auto later = joined(a, {{"x", "y:2", "j", {}}});
  EXPECT_EQ(later->variable("b:cov").dims, (std::vector<std::string>{"y:2", "y:2:2"}));
  EXPECT_EQ(later->original_dim("y:2:2"), "y");

  JoinRule last;
  last.pick = JoinRule::Pick::last;
  const auto own = joined(store({1, 2, 3}, "t"), {{"x", "x", "j", {}}, {"x:2", "x:2", "k", last}});
  EXPECT_EQ(own->original_dim("x:2"), "x");
  EXPECT_EQ(own->variable("b:cov").join_along(1)->path(), "k");
  EXPECT_THAT(error_of([&] {
                joined(store({1, 2, 3}, "t"), {{"x:2", "y:2", "j", {}}});
              }).why(),
              HasSubstr("'a' has no dimension 'y:2'"));
  a = store({1, 2, 3}, "t");
  a.index<std::int32_t>("x:2", "<i4", {1, 2, 3});
  EXPECT_THAT(error_of([&] {
                joined(a, {{"x", "x", "j", {}}});
              }).why(),
              HasSubstr("'x:2' repeats 'x' and would be 'x:2', which is another dimension"));
}

TEST(JoinSources, RefusesDimensionsThatDoNotGoTogether) {
  const auto refusal = [](const JoinedSource& b) {
    return error_of([&] { join_sources({source("a", store({1, 2, 3}, "t")), b}); }).why();
  };
  const std::string other = refusal(source("b", store({1, 2, 4}, "u"), {}, {"u"}));
  EXPECT_THAT(other, HasSubstr("3 labels from 1 to 4, and 3 labels from 1 to 3"));
  EXPECT_THAT(other, HasSubstr("\"join\": {\"x\": \"exact\"}"));
  EXPECT_THAT(refusal(source("b", store({1}, "u"), {{"y", "x", "sources.b.join.y", {}}})),
              HasSubstr("sources.b.join.y: 'b' has no dimension 'y'"));
  EXPECT_THAT(refusal(source("b", store({1}, "u"), {{"x", "z", "j", {}}})),
              HasSubstr("'a' has no dimension 'z'"));
}

}  // namespace join_sources_test
}  // namespace batchfs
