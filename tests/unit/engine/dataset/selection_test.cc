#include "engine/dataset/selection.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace selection_test {

using testing::HasSubstr;

using List = std::vector<std::int64_t>;

List list(const Positions& positions) {
  List result;
  for (std::int64_t i = 0; i < positions.size(); ++i) result.push_back(positions[i]);
  return result;
}

/// Six-hourly times over a month's end, a descending float32 latitude, unsorted levels, names.
struct SelectionTest : testing::Test {
  SelectionTest() {
    std::vector<std::int32_t> hours;
    for (int i = 0; i < 20; ++i) hours.push_back(6 * i);
    std::vector<float> lat;
    for (int i = 0; i < 13; ++i) lat.push_back(static_cast<float>(60 - 10 * i));
    data.index("time", "<i4", hours, {{"units", "hours since 2000-01-30"}})
        .index("lat", "<f4", lat)
        .index<std::int32_t>("lev", "<i4", {850, 500, 700, 200})
        .index<float>("x", "<f4", {0.1f, 0.2f, 0.3f, 0.4f, 0.5f})
        .add<char>(
            "name", "|S6", {"name"}, {3},
            {'o', 's', 'l', 'o', 0, 0, 'b', 'e', 'r', 'g', 'e', 'n', 't', 'r', 'o', 'm', 's', 'o'})
        .index<std::int64_t>("id", "<i8", {9007199254740992, 9007199254740993, 7, 7})
        .declare("v", "<f4", {"plain"}, {10}, {10});
    dataset = data.dataset();
  }
  Positions text(const std::string& dim, const std::string& selection) const {
    return select(*dataset, dim, parse_selector(selection, "--select"));
  }
  Positions json(const std::string& dim, const Json& selection) const {
    return select(*dataset, dim, parse_selector(JsonRef(selection, "select." + dim)));
  }
  MemoryData data;
  std::shared_ptr<const Dataset> dataset;
};

TEST_F(SelectionTest, TextThatIsNotUtf8IsAnErrorThatCanBeShown) {
  EXPECT_THROW(text("lev", "\xff:700"), Error);
  EXPECT_THROW(text("lev", "500:\xc3"), Error);
  EXPECT_THROW(text("name", "\xff"), Error);
}

// The expectations are those of
//   a = xarray.DataArray(numpy.arange(n), dims=dim, coords={dim: values}); a.sel({dim:
//   label}).values
// with slices for ranges; a 0-d answer is a dropped dimension.
TEST_F(SelectionTest, PartialDatesAreRangesAndKeepTheDimension) {
  EXPECT_EQ(list(text("time", "2000-01-31")), (List{4, 5, 6, 7}));
  EXPECT_EQ(text("time", "2000-02").size(), 12);
  EXPECT_EQ(text("time", "2000").size(), 20);
  EXPECT_FALSE(text("time", "2000-01-31").drops_dim());
  EXPECT_EQ(list(json("time", "2000-01-31")), (List{4, 5, 6, 7}));
}

TEST_F(SelectionTest, ADateAsFineAsTheIndexIsOneLabel) {
  const Positions at = text("time", "2000-01-31T06");
  EXPECT_EQ(list(at), List{5});
  EXPECT_TRUE(at.drops_dim());
  EXPECT_TRUE(text("time", "2000-01-31T06:00").drops_dim());
}

TEST_F(SelectionTest, RangesOfDatesIncludeBothEnds) {
  EXPECT_EQ(list(text("time", "2000-01-31:2000-02-01")), (List{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(list(json("time", {{"from", "2000-01-31"}, {"to", "2000-02-01"}})),
            (List{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(text("time", "2000-02:").size(), 12);
  EXPECT_EQ(text("time", ":2000-01").size(), 8);
  EXPECT_EQ(list(text("time", "2000-01-31T03:2000-01-31T13")), (List{5, 6}));
  EXPECT_EQ(list(text("time", "2000-01-31T06:00:2000-01-31T12:00")), (List{5, 6}));
  EXPECT_EQ(text("time", "2000-02-02:2000-01-31").size(), 12);  // either order
  EXPECT_EQ(json("time", {{"from", nullptr}, {"to", nullptr}}).size(), 20);
}

TEST_F(SelectionTest, EndsBeyondDatetime64AreOpenEnds) {
  EXPECT_EQ(text("time", "2000-02:9999").size(), 12);
  EXPECT_EQ(text("time", "0001:2000-01").size(), 8);
}

TEST_F(SelectionTest, DescendingTimesKeepTheirOrder) {
  MemoryData descending;
  descending.index<std::int32_t>("time", "<i4", {72, 48, 24, 0},
                                 {{"units", "hours since 2000-01-01"}});
  const auto times = descending.dataset();
  auto at = [&](const char* text) {
    return list(select(*times, "time", parse_selector(text, "")));
  };
  EXPECT_EQ(at("2000-01-03:2000-01-02"), (List{1, 2}));
  EXPECT_EQ(at("2000-01-03:"), (List{1, 2, 3}));
  EXPECT_EQ(at(":2000-01-03"), (List{0, 1}));
}

TEST_F(SelectionTest, TimesOfSecondsMayLieFarAway) {
  // numpy.array(["2000-01-01", "3000-01-01"], "M8[s]").astype("i8")
  MemoryData far;
  far.add<std::int64_t>("time", "<M8[s]", {"time"}, {2}, {946684800, 32503680000});
  const auto times = far.dataset();
  EXPECT_EQ(list(select(*times, "time", parse_selector("3000", ""))), List{1});
  EXPECT_EQ(list(select(*times, "time", parse_selector("2500:", ""))), List{1});
}

TEST_F(SelectionTest, NotATimeIsNeverSelected) {
  MemoryData data_with_nat;
  data_with_nat.index<std::int32_t>("time", "<i4", {0, -1, 24},
                                    {{"units", "hours since 2000-01-01"}, {"_FillValue", -1}});
  const auto times = data_with_nat.dataset();
  EXPECT_EQ(list(select(*times, "time", parse_selector("1900:", ""))), (List{0, 2}));
}

TEST_F(SelectionTest, OneLabelDropsAListKeeps) {
  EXPECT_TRUE(text("lev", "500").drops_dim());
  EXPECT_EQ(list(text("lev", "500")), List{1});
  EXPECT_EQ(list(text("lev", "500,850")), (List{1, 0}));
  EXPECT_FALSE(json("lev", Json::array({500})).drops_dim());
  EXPECT_TRUE(json("lev", 500).drops_dim());
  EXPECT_EQ(list(json("lev", {850.0, "500"})), (List{0, 1}));
  EXPECT_EQ(list(json("lev", {500, 500})), (List{1, 1}));
}

TEST_F(SelectionTest, NumericRangesKeepTheStoredOrder) {
  EXPECT_EQ(list(text("lat", "50:30")), (List{1, 2, 3}));
  EXPECT_EQ(list(text("lat", "30:50")), (List{1, 2, 3}));
  EXPECT_EQ(text("lat", "50:").size(), 12);
  EXPECT_EQ(list(text("lat", ":50")), (List{0, 1}));
  EXPECT_EQ(list(text("lat", "-55:-60")), List{12});
  EXPECT_EQ(list(text("lev", "500:850")), (List{0, 1, 2}));
  EXPECT_EQ(list(json("lat", {{"from", 50}, {"to", 30.0}})), (List{1, 2, 3}));
}

TEST_F(SelectionTest, SinglePrecisionLabelsAreThoseOneTypes) {
  EXPECT_EQ(list(text("x", "0.3")), List{2});
  EXPECT_EQ(list(text("x", "0.2:0.4")), (List{1, 2, 3}));
}

TEST_F(SelectionTest, LargeIntegersAreComparedExactly) {
  EXPECT_EQ(list(text("id", "9007199254740993")), List{1});
  EXPECT_EQ(list(json("id", 9007199254740992)), List{0});
}

TEST_F(SelectionTest, TextLabels) {
  EXPECT_EQ(list(text("name", "bergen")), List{1});
  EXPECT_EQ(list(text("name", "tromso,oslo")), (List{2, 0}));
  EXPECT_EQ(list(text("name", "a:o")), List{1});
}

TEST_F(SelectionTest, Positions) {
  EXPECT_EQ(list(text("plain", "#7")), List{7});
  EXPECT_TRUE(text("plain", "#7").drops_dim());
  EXPECT_EQ(list(text("plain", "#-1")), List{9});
  EXPECT_EQ(list(text("plain", "#0:#4")), (List{0, 1, 2, 3}));
  EXPECT_EQ(list(text("plain", "#-4:")), (List{6, 7, 8, 9}));
  EXPECT_EQ(list(text("plain", ":#-8")), (List{0, 1}));
  EXPECT_EQ(list(text("plain", "#3,#9")), (List{3, 9}));
  EXPECT_EQ(list(text("plain", "#8:#999")), (List{8, 9}));
  EXPECT_EQ(list(json("plain", {{"from", "#2"}, {"to", "#4"}})), (List{2, 3}));
  EXPECT_EQ(list(json("plain", {"#1", "#-1"})), (List{1, 9}));
}

TEST_F(SelectionTest, WithinASelectionPositionsAndStepsCountThere) {
  const auto within = [&](const char* dim, const char* selection, const Positions& selected) {
    return list(select_within(*dataset, dim, parse_selector(selection, ""), selected));
  };
  const Positions some = Positions::range(4, 6), mixed = Positions::list({9, 0, 2, 0});
  EXPECT_EQ(within("plain", "#0:#2", some), (List{0, 1}));
  EXPECT_EQ(within("plain", "#-1,#1", some), (List{5, 1}));
  EXPECT_EQ(within("plain", "#1::step=2", mixed), (List{1, 3}));
  // lat: 20, 10, 0, -10, -20, -30 and -30, 60, 40, 60.
  EXPECT_EQ(within("lat", "60:-10", some), (List{0, 1, 2, 3}));
  EXPECT_EQ(within("lat", "30:-60:step=2", some), (List{0, 2, 4}));
  EXPECT_EQ(within("lat", "-20", some), List{4});
  EXPECT_EQ(within("lat", "60", some), List{});
  EXPECT_EQ(within("lat", "60", mixed), (List{1, 3}));
  EXPECT_EQ(within("lat", "60,-30", mixed), (List{1, 3, 0}));
  EXPECT_EQ(within("lat", "35:60:step=2", mixed), (List{1, 3}));
  EXPECT_EQ(within("lat", "50:-20", Positions::range(0, 1)), List{});
  EXPECT_EQ(within("lat", "41:nearest", mixed), List{2});
  EXPECT_THAT(error_of([&] { within("lat", "61", some); }).why(), HasSubstr("no '61' in 'lat'"));
}

TEST_F(SelectionTest, ListsOfLabelsWithinRandomSelectionsAreThoseOfOneLabelAfterTheOther) {
  std::minstd_rand random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::int64_t>(random() % n); };
  const std::vector<std::string> labels{"850", "500", "700", "200", "#0", "200:600"};
  for (int i = 0; i < 200; ++i) {
    List stored;
    for (std::int64_t count = 1 + below(8); count > 0; --count) stored.push_back(below(4));
    const Positions selected = Positions::list(stored);
    std::vector<std::string> asked;
    for (std::int64_t count = 2 + below(4); count > 0; --count)
      asked.push_back(labels[static_cast<std::size_t>(below(labels.size()))]);
    List expected;
    const bool any_range = std::ranges::count(asked, "200:600") > 0;
    for (const std::string& one : asked)
      for (const std::int64_t place :
           list(select_within(*dataset, "lev", parse_selector(one, ""), selected)))
        if (!any_range || std::ranges::count(expected, place) == 0) expected.push_back(place);
    EXPECT_EQ(
        list(select_within(*dataset, "lev",
                           parse_selector(fmt::format("{}", fmt::join(asked, ",")), ""), selected)),
        expected)
        << fmt::format("{} of {}", fmt::join(asked, ","), fmt::join(stored, ","));
  }
}

TEST_F(SelectionTest, LabelsMayBeRepeatedAndPeriodsAFewTimes) {
  EXPECT_EQ(json("lev", Json(std::vector<int>(1000, 700))).size(), 1000);
  EXPECT_EQ(json("time", Json(std::vector<std::string>(8, "2000"))).size(), 160);
  EXPECT_THAT(
      error_of([&] { json("time", Json(std::vector<std::string>(9, "2000"))); }).why(),
      HasSubstr("time: the list repeats periods: it selects more than 169 positions, and 'time' "
                "has 20; name each period once"));
}

/// Longitudes from 0 to 350, and the same from -180 on; a latitude and an index without a period.
struct CircleSelectionTest : testing::Test {
  CircleSelectionTest() {
    std::vector<double> east, both, plain;
    for (int i = 0; i < 36; ++i) {
      east.push_back(10 * i);
      both.push_back(10 * i - 180);
      plain.push_back(i);
    }
    data.index("lon", "<f8", east)
        .index("x", "<f8", both, {{"units", "degrees_east"}})
        .index("lat", "<f8", plain);
    dataset = data.dataset();
  }
  List text(const std::string& dim, const std::string& selection) const {
    return list(
        select(*dataset, dim, parse_selector(selection, "--select " + dim + "=" + selection)));
  }
  List json(const std::string& dim, const Json& selection) const {
    return list(select(*dataset, dim, parse_selector(JsonRef(selection, "select." + dim))));
  }
  MemoryData data;
  std::shared_ptr<const Dataset> dataset;
};

TEST_F(CircleSelectionTest, WithWrapARangeGoesOnAtTheBeginning) {
  EXPECT_EQ(text("lon", "330:20:wrap"), (List{33, 34, 35, 0, 1, 2}));
  EXPECT_EQ(text("lon", "-30:20:wrap"), (List{33, 34, 35, 0, 1, 2}));
  EXPECT_EQ(json("lon", {{"from", 330}, {"to", 20}, {"wrap", true}}), (List{33, 34, 35, 0, 1, 2}));
  EXPECT_EQ(text("lon", "20:40:wrap"), (List{2, 3, 4}));
  EXPECT_EQ(text("x", "150:-160:wrap"), (List{33, 34, 35, 0, 1, 2}));
  EXPECT_EQ(text("x", "150:200:wrap"), (List{33, 34, 35, 0, 1, 2}));
  EXPECT_EQ(text("lon", "20:20:wrap"), List{2});
  const List round = text("lon", "-180:180:wrap");
  EXPECT_EQ(round.size(), 36u);
  EXPECT_EQ(round.front(), 18);
  EXPECT_EQ(round.back(), 17);
}

TEST_F(CircleSelectionTest, PositionsGoRoundInAnyDimension) {
  EXPECT_EQ(text("lat", "#34:#2:wrap"), (List{34, 35, 0, 1}));
  EXPECT_EQ(text("lat", "#-2:#2:wrap"), (List{34, 35, 0, 1}));
  EXPECT_EQ(text("lat", "#34:#0:wrap"), (List{34, 35}));
  EXPECT_EQ(text("lat", "#3:#36:wrap").size(), 33u);
}

TEST_F(CircleSelectionTest, TheLastPositionsAndTheFirstOnesMayBeAll) {
  MemoryData four;
  four.declare("v", "<f4", {"x"}, {4}, {4});
  const auto plain = four.dataset();
  const auto at = [&](const char* text) {
    return list(select(*plain, "x", parse_selector(text, "")));
  };
  EXPECT_EQ(at("#-2:#2:wrap"), (List{2, 3, 0, 1}));
  EXPECT_EQ(at("#-1:#3:wrap"), (List{3, 0, 1, 2}));
  EXPECT_EQ(at("#-4:#0:wrap"), (List{0, 1, 2, 3}));
  EXPECT_EQ(at("#0:#4:wrap"), (List{0, 1, 2, 3}));
  EXPECT_EQ(at("#-2:#2:wrap:step=3"), (List{2, 1}));
  EXPECT_EQ(at("#-1:#1:wrap"), (List{3, 0}));
  for (const char* nothing :
       {"#2:#2:wrap", "#2:#-2:wrap", "#-2:#-2:wrap", "#0:#-4:wrap", "#-0:#0:wrap"})
    EXPECT_THAT(error_of([&] { at(nothing); }).why(), HasSubstr("the range of positions is empty"))
        << nothing;
  for (const char* more : {"#-3:#2:wrap", "#-4:#4:wrap"})
    EXPECT_THAT(error_of([&] { at(more); }).why(),
                HasSubstr("goes more than once round 'x', which has 4"))
        << more;
}

TEST_F(CircleSelectionTest, WithinASelectionARangeGoesRoundInItsOwnOrder) {
  const auto within = [&](const char* selection, const Positions& selected) {
    return list(select_within(*dataset, "lon", parse_selector(selection, ""), selected));
  };
  const Positions mixed = Positions::list({1, 35, 20, 34, 0});
  EXPECT_EQ(within("340:10:wrap:step=2", mixed), (List{3, 4}));
  EXPECT_EQ(within("340:10:wrap:step=2", Positions::range(1, 34)), (List{33}));
  EXPECT_EQ(within("340:10:wrap:step=2", Positions::range(0, 36)), (List{34, 0}));
}

TEST_F(CircleSelectionTest, WithoutWrapARangeOverTheEndIsAnErrorThatShowsIt) {
  const std::pair<Json, const char*> cases[] = {
      {{{"from", 350}, {"to", 30}},
       "select.lon: 350 is more than 30, so this range of 'lon' goes round; write {\"from\": 350, "
       "\"to\": 30, \"wrap\": true}, "
       "or the smaller one first for all between them"},
      {{{"from", -10}, {"to", 30}},
       "select.lon: 'lon' goes from 0.0 to 350.0, so -10 to 30 goes over its end; write {\"from\": "
       "-10, \"to\": 30, \"wrap\": true}"},
      {{{"from", -180}, {"to", 180}}, "write {\"from\": -180, \"to\": 180, \"wrap\": true}"},
      {{{"from", -180}, {"to", -90}}, "write {\"from\": -180, \"to\": -90, \"wrap\": true}"},
  };
  for (const auto& [selection, says] : cases)
    EXPECT_THAT(error_of([&, &s = selection] { json("lon", s); }).why(), HasSubstr(says))
        << selection.dump();
  EXPECT_THAT(error_of([&] { text("lon", "350:30"); }).why(),
              HasSubstr("write 350:30:wrap (in a view {\"from\": 350"));
  EXPECT_THAT(error_of([&] { text("x", "150:200"); }).why(), HasSubstr("write 150:200:wrap"));
}

TEST_F(CircleSelectionTest, RangesThatMissNothingNeedNoWrap) {
  EXPECT_EQ(text("lon", "0:360").size(), 36u);
  EXPECT_EQ(text("lon", "-5:20"), (List{0, 1, 2}));
  EXPECT_EQ(text("lon", "-5:355").size(), 36u);
  EXPECT_EQ(text("x", "-180:180").size(), 36u);
  EXPECT_EQ(text("lon", "340:"), (List{34, 35}));
  EXPECT_EQ(text("lat", "30:20").size(), 11u);  // either order: not cyclic
  EXPECT_EQ(text("lat", "-10:3"), (List{0, 1, 2, 3}));
}

TEST_F(CircleSelectionTest, WrapNeedsACircleAndBothEnds) {
  struct {
    const char *dim, *selection, *says;
  } const cases[] = {
      {"lat", "30:20:wrap", "'lat' is not cyclic"},
      {"lon", "350::wrap", "needs both ends"},
      {"lon", "0:361:wrap", "more than once round"},
      {"lon", "351:359:wrap", "nothing of 'lon' lies in this range"},
      {"lat", "#4:#4:wrap", "empty"},
      {"lat", "#40:#4:wrap", "position '#40' is outside"},
      {"lat", "#4:#40:wrap", "position '#40' is outside"},
      {"lon", "-10", "the nearest is 350.0"},
  };
  for (const auto& c : cases)
    EXPECT_THAT(error_of([&] { text(c.dim, c.selection); }).why(), HasSubstr(c.says))
        << c.dim << "=" << c.selection;
}

TEST_F(SelectionTest, RangesOfTextTakeTheirEndsInEitherOrder) {
  EXPECT_EQ(list(text("name", "o:a")), List{1});
}

TEST_F(SelectionTest, AnAbsentLabelIsAnsweredWithTheNearest) {
  EXPECT_THAT(error_of([&] { text("time", "2000-01-31T05"); }).why(),
              HasSubstr("the nearest is 2000-01-31T06:00:00"));
  EXPECT_THAT(error_of([&] { text("name", "tromsoe"); }).why(),
              HasSubstr("did you mean 'tromso'?"));
  EXPECT_THAT(error_of([&] { text("lev", "501"); }).why(), HasSubstr("the nearest is 500"));
}

TEST_F(SelectionTest, ARangeInOneStringOfAViewIsAnsweredWithTheObject) {
  EXPECT_THAT(error_of([&] { json("lev", "500:850"); }).why(),
              HasSubstr("a range is {\"from\": 500, \"to\": 850}"));
  EXPECT_THAT(error_of([&] { json("time", "2000-01-30:2000-02-01"); }).why(),
              HasSubstr("a range is {\"from\": \"2000-01-30\", \"to\": \"2000-02-01\"}"));
  EXPECT_THAT(error_of([&] {
                json("lev", {{"start", 500}, {"stop", 850}});
              }).why(),
              HasSubstr("unknown key 'start': the first label of a range is \"from\""));
}

TEST_F(SelectionTest, WhatIsNotThereIsAnErrorThatSaysWhatIs) {
  struct {
    const char *dim, *selection, *says;
    ErrorCode code;
  } const cases[] = {
      {"time", "1999", "2000-01-30T00:00:00", ErrorCode::not_found},
      {"time", "2000-01-31T05", "2000-02-03T18:00:00", ErrorCode::not_found},
      {"time", "noon", "'noon' is not a date; write 2000-01-31", ErrorCode::invalid_argument},
      {"time", "2000-02-30", "not a date", ErrorCode::invalid_argument},
      {"time", "2001:2002", "nothing of 'time'", ErrorCode::not_found},
      {"lev", "501", "from 850 to 200", ErrorCode::not_found},
      {"lev", "many", "'many' is not a number", ErrorCode::invalid_argument},
      {"lev", "500,", "empty label", ErrorCode::invalid_argument},
      {"lev", "", "the selection is empty", ErrorCode::invalid_argument},
      {"lev", "900:1000", "nothing of 'lev'", ErrorCode::not_found},
      {"id", "7", "occurs 2 times", ErrorCode::invalid_argument},
      {"id", "7,9007199254740993", "occurs 2 times", ErrorCode::invalid_argument},
      {"name", "rome", "from oslo to tromso", ErrorCode::not_found},
      {"plain", "5", "'#0:#4'", ErrorCode::not_found},
      {"plain", "#10", "which has 10", ErrorCode::not_found},
      {"plain", "#-11", "which has 10", ErrorCode::not_found},
      {"plain", "#", "write '#3'", ErrorCode::invalid_argument},
      {"plain", "#1x", "write '#3'", ErrorCode::invalid_argument},
      {"plain", "#99999999999999999999", "write '#3'", ErrorCode::invalid_argument},
      {"plain", "#-9223372036854775808", "which has 10", ErrorCode::not_found},
      {"plain", "#4:#4", "empty", ErrorCode::invalid_argument},
      {"lev", "#0:500", "of labels or of positions", ErrorCode::invalid_argument},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(std::string(c.dim) + "=" + c.selection);
    const Error error = error_of([&] { text(c.dim, c.selection); });
    EXPECT_EQ(error.code(), c.code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(c.says));
  }
}

TEST_F(SelectionTest, JsonOfTheWrongTypeNamesItsPath) {
  for (const auto& [selection, says] : std::initializer_list<std::pair<Json, const char*>>{
           {nullptr, "select.lev: expected a label"},
           {Json::array(), "select.lev: the list is empty"},
           {Json::array({Json::array({500})}), "select.lev[0]: expected a label"},
           {Json{{"from", 500}, {"till", 600}}, "select.lev: unknown key 'till'"},
           {Json{{"form", 500}}, "did you mean 'from'?"},
           {Json{{"from", Json::array({1})}}, "select.lev.from: expected a label"},
           {Json(501), "select.lev: no '501'"}}) {
    SCOPED_TRACE(selection.dump());
    EXPECT_THAT(error_of([&, &s = selection] { json("lev", s); }).why(), HasSubstr(says));
  }
}

TEST_F(SelectionTest, AnEmptyCoordinateHasNoLabels) {
  MemoryData empty;
  empty.declare("x", "<f4", {"x"}, {0}, {1});
  const auto nothing = empty.dataset();
  EXPECT_THAT(error_of([&] { select(*nothing, "x", parse_selector("5", "")); }).why(),
              HasSubstr("from nothing to nothing"));
  EXPECT_THAT(error_of([&] { select(*nothing, "x", parse_selector("5:6", "")); }).why(),
              HasSubstr("from nothing to nothing"));
  EXPECT_EQ(error_of([&] { select(*nothing, "x", parse_selector("#0", "")); }).code(),
            ErrorCode::not_found);
}

TEST(Select, TypesWithoutLabelsAreSelectedByPositionOnly) {
  MemoryData data;
  data.add<char>("x", "|V3", {"x"}, {4}, std::vector<char>(12, 1));
  const auto dataset = data.dataset();
  for (const char* text : {"1975", "1,2", "0:5"})
    EXPECT_EQ(error_of([&] { select(*dataset, "x", parse_selector(text, "x")); }).code(),
              ErrorCode::not_supported)
        << text;
  EXPECT_EQ(select(*dataset, "x", parse_selector("#3", "x"))[0], 3);
}

}  // namespace selection_test
}  // namespace batchfs
