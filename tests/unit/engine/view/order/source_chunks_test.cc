#include "engine/view/order/source_chunks.h"

#include <gmock/gmock.h>

#include "engine/dataset/joined/join_sources.h"
#include "engine/view/order/chunk_groups.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace source_chunks_test {

using testing::ElementsAre;
using testing::HasSubstr;

MemoryData store(const std::vector<std::int64_t>& hours, const std::string& name,
                 std::int64_t chunk) {
  return MemoryData()
      .index<std::int64_t>("time", "<i8", hours, {{"units", "hours since 2000-01-01"}})
      .declare(name, "<f4", {"time"}, {static_cast<std::int64_t>(hours.size())}, {chunk});
}

struct SourceChunksTest : testing::Test {
  SourceChunksTest() {
    spec.document = Json::parse(R"({"sources": {"a": {}, "b": {}, "c": {}}})");
    spec.window = {{.dim = "time"}};
    spec.order.by = "b";
    for (const char* name : {"t", "b:u"}) variables.push_back(&dataset->variable(name));
  }
  std::shared_ptr<const SourceChunks> chunks() {
    return source_chunks(spec, *dataset, variables, selected, joined);
  }
  const std::shared_ptr<const Dataset> dataset =
      join_sources({{"a", "sources.a", store({0, 1, 2, 3, 4, 5, 6, 7}, "t", 2).dataset(), {}, {}},
                    {"b",
                     "sources.b",
                     store({2, 3, 4, 6, 7}, "u", 2).dataset(),
                     {{"time", "time", "join", {}}},
                     {"u"}}});
  std::map<std::string, Positions> selected{{"time", Positions::range(0, 8)}};
  JoinedAxes joined{selected};
  std::vector<const Variable*> variables;
  ViewSpec spec;
};

TEST_F(SourceChunksTest, AreThoseOfTheJoinedPositions) {
  // 5 is missing and goes with 4; 0 and 1 go with 2.
  EXPECT_THAT(chunks()->along(0), ElementsAre(0, 0, 0, 0, 1, 1, 1, 2));
  const std::vector<WindowDim> windows{{"time", 1, false}};
  const WindowGrid grid{{0}, {8}, {1}};
  const auto by = chunks();
  const ChunkGroups groups = chunk_groups({variables, selected, windows, grid, by.get()});
  EXPECT_THAT(groups.axes[0].bounds, ElementsAre(0, 4, 7, 8));
}

TEST_F(SourceChunksTest, OfASelection) {
  selected.insert_or_assign("time", Positions::range(5, 3));
  EXPECT_THAT(chunks()->along(0), ElementsAre(1, 1, 2));
}

TEST_F(SourceChunksTest, NeedAVariableOfTheSource) {
  variables[1] = &dataset->variable("t");
  EXPECT_THAT(error_of([&] { chunks(); }).why(), HasSubstr("no tensor has a variable of 'b'"));
}

TEST_F(SourceChunksTest, TheFirstSourceNeedsNone) {
  for (const char* by : {"", "a"}) {
    spec.order.by = by;
    EXPECT_EQ(chunks(), nullptr);
  }
}

}  // namespace source_chunks_test
}  // namespace batchfs
