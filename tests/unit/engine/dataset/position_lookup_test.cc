#include "engine/dataset/position_lookup.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace position_lookup_test {

using testing::HasSubstr;
using List = std::vector<std::int64_t>;

/// Names of which some look like positions, and a dimension without labels.
struct PositionLookupTest : testing::Test {
  PositionLookupTest()
      : dataset(
            MemoryData()
                .add<char>("name", "|S2", {"name"}, {4}, {'a', 'b', '#', '1', '#', '3', 'x', 'y'})
                .declare("v", "<f4", {"plain"}, {10}, {10})
                .dataset()) {}

  std::int64_t position(const std::string& text, const Positions& counted,
                        const char* dim = "name") const {
    const IndexLookup labels(*dataset, dim, "where");
    return PositionLookup(labels, counted).position(text);
  }
  List range(const char* text, const Positions& counted) const {
    const IndexLookup labels(*dataset, "plain", "where");
    const Selector selector = parse_selector(text, "where");
    const Positions found = PositionLookup(labels, counted).range(selector.parts.at(0));
    List result;
    for (std::int64_t i = 0; i < found.size(); ++i) result.push_back(found[i]);
    return result;
  }

  std::shared_ptr<const Dataset> dataset;
};

TEST_F(PositionLookupTest, CountsInTheSelection) {
  const Positions counted = Positions::list({9, 2, 4});
  EXPECT_EQ(position("#0", counted, "plain"), 0);
  EXPECT_EQ(position("#-1", counted, "plain"), 2);
  EXPECT_EQ(range("#1:", counted), (List{1, 2}));
  EXPECT_EQ(range(":#-1", counted), (List{0, 1}));
  EXPECT_EQ(range("#-9:#9", counted), (List{0, 1, 2}));
  EXPECT_EQ(range("#-1:#1:wrap", counted), (List{2, 0}));
  EXPECT_EQ(range("#-1:#2:wrap", counted), (List{2, 0, 1}));
  EXPECT_EQ(range("#2:#1:wrap", counted), (List{2, 0}));
  EXPECT_EQ(range("#1:#3:wrap", counted), (List{1, 2}));
}

TEST_F(PositionLookupTest, NamesTheSelectionThatLacksThePosition) {
  const auto why = [&](const char* text, const Positions& counted) {
    return error_of([&] { range(text, counted); }).why();
  };
  EXPECT_EQ(why("#4:#2:wrap", Positions::range(0, 4)),
            "where: position '#4' is outside of the selection of 'plain', which has 4");
  EXPECT_EQ(why("#10:#2:wrap", Positions::range(0, 10)),
            "where: position '#10' is outside of 'plain', which has 10");
  EXPECT_EQ(why("#1:#5:wrap", Positions::range(6, 4)),
            "where: position '#5' is outside of the selection of 'plain', which has 4");
  EXPECT_EQ(why("#4:#6", Positions::range(6, 4)),
            "where: the range of positions is empty: the selection of 'plain' has 4");
  EXPECT_EQ(why("#2:#-8:wrap", Positions::range(0, 10)),
            "where: the range of positions is empty: 'plain' has 10");
  EXPECT_EQ(why("#-3:#2:wrap", Positions::range(6, 4)),
            "where: '#-3' to '#2' goes more than once round the selection of 'plain', which has 4; "
            "leave out \"wrap\" for those between them");
  EXPECT_EQ(why("#1::wrap", Positions::range(0, 10)),
            "where: a range with \"wrap\" needs both ends");
}

TEST_F(PositionLookupTest, APositionThatIsALabelOfAnotherOneIsAnError) {
  const Positions all = Positions::range(0, 4);
  EXPECT_EQ(position("#0", all), 0);
  EXPECT_EQ(position("#1", all), 1);  // both
  EXPECT_EQ(position("#2", all), 2);
  EXPECT_EQ(position("#-1", all), 3);
  EXPECT_THAT(error_of([&] { position("#3", all); }).why(),
              HasSubstr("'#3' is a position, and 'name' has this label at another one; write '#2' "
                        "for the label, and 'xy' for the position"));
}

TEST_F(PositionLookupTest, ALabelLikeAPositionMayLieElsewhereInTheSelectionOrOutside) {
  const Positions last = Positions::range(1, 3);  // #1, #3, xy
  EXPECT_EQ(position("#2", last), 2);
  EXPECT_THAT(error_of([&] { position("#1", last); }).why(),
              HasSubstr("has this label at another one; write '#0' for the label, and '#3' for the "
                        "position"));
  EXPECT_THAT(error_of([&] { position("#3", last); }).why(),
              HasSubstr("has this label at another one; write '#1' for the label"));
  EXPECT_EQ(position("#1", Positions::list({3, 1})), 1);  // both
  EXPECT_THAT(error_of([&] {
                position("#1", Positions::list({3, 0}));
              }).why(),
              HasSubstr("has this label at another one outside of the selection; write 'ab' for "
                        "the position"));
  EXPECT_THAT(error_of([&] {
                position("#3", Positions::list({3, 0}));
              }).why(),
              HasSubstr("has this label at another one outside of the selection"));
}

}  // namespace position_lookup_test
}  // namespace batchfs
