#include "engine/view/sources_spec.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace sources_spec_test {

using testing::HasSubstr;

std::vector<SourceSpec> parse(const char* text) {
  const Json json = Json::parse(text);
  return parse_sources(JsonRef(json, "sources"));
}
std::string refusal(const char* text) {
  return error_of([&] { parse(text); }).why();
}

TEST(SourcesSpec, ReadsStoresGroupsAndJoins) {
  const auto sources = parse(R"({"era5": {}, "sst": {"store": "sea", "group": "day", "join": {
    "time": {"pick": "last", "tolerance": "7d", "missing": "pad"}, "lat": {"as": "latitude", "tolerance": 0.1},
    "lon": "exact"}}})");
  ASSERT_EQ(sources.size(), 2U);
  EXPECT_EQ(sources[0].store, "");
  EXPECT_EQ(sources[1].store, "sea");
  EXPECT_EQ(sources[1].group, "day");
  ASSERT_EQ(sources[1].joins.size(), 3U);
  EXPECT_EQ(sources[1].joins[0].rule.pick, JoinRule::Pick::last);
  EXPECT_EQ(sources[1].joins[0].rule.duration, 7 * 86'400'000'000'000);
  EXPECT_TRUE(sources[1].joins[0].rule.pads);
  EXPECT_EQ(sources[1].joins[1].as, "latitude");
  EXPECT_EQ(sources[1].joins[1].rule.distance, 0.1);
  EXPECT_EQ(sources[1].joins[2].path, "sources.sst.join.lon");
}

TEST(SourcesSpec, APrefixIsASourceBeforeItIsAGroup) {
  const auto sources = parse(R"({"era5": {}, "imerg": {"store": "imerg"}})");
  EXPECT_EQ(source_of(sources, "imerg:rain"), &sources[1]);
  EXPECT_EQ(source_of(sources, "imerg:model/hist:rain"), &sources[1]);
  EXPECT_EQ(source_of(sources, "era5:t2m"), &sources[0]);
  for (const char* text : {"t2m", "model/hist:tas", "/imerg:rain", "imerg:", "img:rain"})
    EXPECT_EQ(source_of(sources, text), nullptr) << text;
}

TEST(SourcesSpec, SaysWhatIsWrong) {
  EXPECT_THAT(refusal("{}"), HasSubstr("name at least one source"));
  EXPECT_THAT(refusal(R"({"a/b": {}})"), HasSubstr("cannot be a source's name"));
  EXPECT_THAT(refusal(R"({"a": {}, "b": {"store": "http://x"}})"), HasSubstr("not by URL"));
  EXPECT_THAT(refusal(R"({"a": {"join": {"x": "exact"}}})"), HasSubstr("no \"join\" itself"));
  EXPECT_THAT(refusal(R"({"a": {}, "b": {"join": {"x": {"tolerance": -1}}}})"),
              HasSubstr("0 or more"));
  EXPECT_THAT(refusal(R"({"a": {}, "b": {"join": {"x": {"tolerance": "1mo"}}}})"),
              HasSubstr("31d"));
  EXPECT_THAT(refusal(R"({"a": {}, "b": {"join": {"x": {"tolerance": "1h"}}}})"),
              HasSubstr("nearest"));
  EXPECT_THAT(refusal(R"({"a": {}, "b": {"join": {"x": "exact", "y": {"as": "x"}}}})"),
              HasSubstr("'x' is 'x' as well"));
  EXPECT_THAT(refusal(R"({"a": {}, "b": {"join": {"x": {"ratio": 0.25}}}})"), HasSubstr("\"1/4\""));
  EXPECT_THAT(refusal(R"({"a": {}, "b": {"join": {"x": {"ratio": "1/1"}}}})"),
              HasSubstr("\"1/4\""));
  EXPECT_THAT(refusal(R"({"a": {}, "b": {"join": {"x": {"period": -1}}}})"),
              HasSubstr("not a period"));
  EXPECT_THAT(refusal(R"({"a": {"stores": ["b", "c"], "concat": 1}})"), HasSubstr("a new one"));
  EXPECT_THAT(refusal(R"({"a": {"stores": ["b"], "concat": {"dim": "m", "labels": [1, "x"]}}})"),
              HasSubstr("all numbers or all texts"));
  EXPECT_THAT(refusal(R"({"a": {"stores": ["b"], "concat": {"dim": "m", "labels": [1, 1]}}})"),
              HasSubstr("given twice"));
  EXPECT_THAT(refusal(R"({"a": {"stores": ["b"], "concat": {"dim": "m", "labels": [1e300]}}})"),
              HasSubstr("too large"));
  EXPECT_THAT(refusal(R"({"a": {"stores": ["b"], "concat": {"dim": "m"}, "prefer": "last"}})"),
              HasSubstr("no label in common"));
  EXPECT_THAT(refusal(R"({"a": {}, "b": {"join": {"x": {"ratio": 4, "tolerance": 1}}}})"),
              HasSubstr("must nest"));
  EXPECT_THAT(refusal(R"({"a": {"stores": ["b", "b"]}})"), HasSubstr("given twice"));
  EXPECT_THAT(refusal(R"({"a": {"stores": []}})"), HasSubstr("at least one"));
  EXPECT_THAT(refusal(R"({"a": {"stores": "b"}})"), HasSubstr("\"store\": \"b\""));
  EXPECT_THAT(refusal(R"({"a": {"stores": ["b"], "store": "c"}})"), HasSubstr("not both"));
}

TEST(SourcesSpec, NamesStoresOneBehindTheOther) {
  const auto sources = parse(R"({"a": {"stores": ["y{1999..2001}", "z"], "concat": "time"}})");
  EXPECT_EQ(sources[0].stores, (std::vector<std::string>{"y1999", "y2000", "y2001", "z"}));
  EXPECT_EQ(sources[0].concat.dim, "time");
  EXPECT_EQ(sources[0].concat.path, "sources.a");
}

TEST(SourcesSpec, NamesMembersAlongANewDimension) {
  const auto sources = parse(
      R"({"a": {"stores": ["m{00..02}", "z"], "concat": {"dim": "member", "labels": [1, 2, 0.5, 4]}}})");
  EXPECT_TRUE(sources[0].concat.is_new);
  EXPECT_EQ(sources[0].concat.dim, "member");
  EXPECT_EQ(sources[0].concat.labels, (std::vector<Json>{1, 2, 0.5, 4}));
  EXPECT_EQ(sources[0].keys, (std::vector<std::string>{"00", "01", "02", "z"}));
}

TEST(SourcesSpec, ANewDimensionHasAShortForm) {
  const auto sources = parse(R"({"a": {"stores": ["m", "z"], "concat": {"member": "new"}}})");
  EXPECT_TRUE(sources[0].concat.is_new);
  EXPECT_EQ(sources[0].concat.dim, "member");
  EXPECT_EQ(parse(R"({"a": {"stores": ["m", "z"], "concat": {"dim": "new"}}})")[0].concat.dim,
            "new");
  EXPECT_THAT(refusal(R"({"a": {"stores": ["m", "z"], "concat": {"a/b": "new"}}})"),
              HasSubstr("'a/b' cannot be a dimension's name"));
  EXPECT_THAT(refusal(R"({"a": {"stores": ["m", "z"], "concat": {"member": "old"}}})"),
              HasSubstr("unknown key 'member'"));
}

TEST(SourcesSpec, ReadsPeriodsAndCoarserGrids) {
  const auto sources =
      parse(R"({"a": {}, "b": {"join": {"x": {"ratio": "1/24"}, "y": {"period": 360}}}})");
  EXPECT_EQ(sources[1].joins[0].rule.coarser, 24);
  EXPECT_EQ(sources[1].joins[0].rule.ratio, 1);
  EXPECT_EQ(sources[1].joins[1].rule.period, 360);
}

}  // namespace sources_spec_test
}  // namespace batchfs
