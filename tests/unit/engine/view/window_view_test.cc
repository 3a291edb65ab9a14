#include <gmock/gmock.h>

#include "engine/view/describe/batch_coordinates.h"
#include "engine/view/view.h"
#include "tests/unit/engine/view/assembled.h"
#include "tests/unit/engine/view/provenance_of.h"

namespace batchfs {
namespace window_view_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

struct WindowViewTest : testing::Test {
  WindowViewTest() {
    data.declare("a", "<i4", {"time", "lat", "lon"}, {5, 3, 4}, {2, 2, 4})
        .declare("b", "<i4", {"time", "level", "lat", "lon"}, {5, 2, 3, 4}, {1, 2, 3, 3})
        .declare("m", "<i4", {"lat", "lon"}, {3, 4}, {3, 4})
        .declare("f", "<f4", {"time"}, {5}, {5})
        .declare("name", "|S8", {"time"}, {5}, {5})
        .declare("rec", "|V5", {"time"}, {5}, {5})
        .index<std::int32_t>("time", "<i4", {0, 6, 12, 18, 24},
                             {{"units", "hours since 2000-01-01"}})
        .index<std::int32_t>("level", "<i4", {500, 850});
    dataset = data.dataset();
  }
  std::shared_ptr<const View> view(const std::string& json) const {
    return parse_view(dataset, json);
  }
  Error refusal(const std::string& json) const {
    return error_of([&] { view(json); });
  }
  MemoryData data;
  std::shared_ptr<const Dataset> dataset;
};

struct Case {
  const char* view;
  std::int64_t batch;
  Dims shape;
  std::vector<std::int64_t> values;
};

// Values of the first tensor, with
//   A = arange(60).reshape(5, 3, 4); B = 1000 + arange(120).reshape(5, 2, 3, 4); M = 2000 +
//   arange(12).reshape(3, 4)
// by the numpy expression that is written beside them (cat is concatenate).
const Case kCases[] = {
    {R"({"variables": ["a"], "window": {"lat": {"size": 2, "stride": 1}, "time": 2}, "batch": 3})",
     0,
     // stack([A[0:2, 0:2], A[2:4, 0:2], A[0:2, 1:3]])
     {3, 2, 2, 4},
     {0,  1,  2,  3,  4,  5,  6,  7,  12, 13, 14, 15, 16, 17, 18, 19,
      24, 25, 26, 27, 28, 29, 30, 31, 36, 37, 38, 39, 40, 41, 42, 43,
      4,  5,  6,  7,  8,  9,  10, 11, 16, 17, 18, 19, 20, 21, 22, 23}},
    {R"({"variables": ["a"], "window": {"lat": {"size": 2, "stride": 1}, "time": 2}, "batch": 3})",
     1,
     // stack([A[2:4, 1:3]])
     {1, 2, 2, 4},
     {28, 29, 30, 31, 32, 33, 34, 35, 40, 41, 42, 43, 44, 45, 46, 47}},
    {R"({"variables": ["a"], "window": {"time": 3, "lon": {"size": 3, "wrap": true}}, "batch": 2})",
     0,
     // stack([A[0:3, :, 0:3], A[0:3][:, :, [3, 0, 1]]])
     {2, 3, 3, 3},
     {0,  1,  2,  4,  5,  6,  8,  9,  10, 12, 13, 14, 16, 17, 18, 20, 21, 22,
      24, 25, 26, 28, 29, 30, 32, 33, 34, 3,  0,  1,  7,  4,  5,  11, 8,  9,
      15, 12, 13, 19, 16, 17, 23, 20, 21, 27, 24, 25, 31, 28, 29, 35, 32, 33}},
    {R"({"variables": ["m"], "window": {"lon": {"size": 9, "stride": 3, "wrap": true}, "lat": 3}, "batch": 2})",
     0,
     // stack([M[:, [0, 1, 2, 3, 0, 1, 2, 3, 0]], M[:, [3, 0, 1, 2, 3, 0, 1, 2, 3]]])
     {2, 3, 9},
     {2000, 2001, 2002, 2003, 2000, 2001, 2002, 2003, 2000, 2004, 2005, 2006, 2007, 2004,
      2005, 2006, 2007, 2004, 2008, 2009, 2010, 2011, 2008, 2009, 2010, 2011, 2008, 2003,
      2000, 2001, 2002, 2003, 2000, 2001, 2002, 2003, 2007, 2004, 2005, 2006, 2007, 2004,
      2005, 2006, 2007, 2011, 2008, 2009, 2010, 2011, 2008, 2009, 2010, 2011}},
    {R"({"window": {"time": 1}, "tensors": {"x": {"variables": ["a"], "offsets": {"time": [-1, 1]}}}, "batch": 9})",
     0,
     // stack([A[[0, 2]], A[[1, 3]], A[[2, 4]]])
     {3, 2, 3, 4},
     {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 24, 25, 26, 27, 28, 29,
      30, 31, 32, 33, 34, 35, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
      36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 24, 25, 26, 27, 28, 29,
      30, 31, 32, 33, 34, 35, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59}},
    {R"({"window": {"time": {"size": 2, "stride": 1}}, "tensors": {"x": {"variables": ["a"], "offsets": {"time": [1, -1]}}, "y": {"variables": ["a"]}}, "batch": 9})",
     0,
     // stack([A[[2, 3, 0, 1]], A[[3, 4, 1, 2]]])
     {2, 4, 3, 4},
     {24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
      44, 45, 46, 47, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
      16, 17, 18, 19, 20, 21, 22, 23, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
      48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 12, 13, 14, 15, 16, 17, 18, 19,
      20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35}},
    {R"({"window": {"lon": {"size": 1, "wrap": true}}, "tensors": {"x": {"variables": ["m"], "offsets": {"lon": [-1, 5]}}}, "batch": 4})",
     0,
     // stack([M[:, [(s - 1) % 4, (s + 5) % 4]] for s in range(4)])
     {4, 3, 2},
     {2003, 2001, 2007, 2005, 2011, 2009, 2000, 2002, 2004, 2006, 2008, 2010,
      2001, 2003, 2005, 2007, 2009, 2011, 2002, 2000, 2006, 2004, 2010, 2008}},
    {R"({"window": {"time": 1}, "tensors": {"x": {"variables": ["b", "a"], "stack": "c", "dims": ["lat", "c", "time", "lon"]}}, "batch": 2})",
     1,
     // stack([cat([B[t:t+1], A[t:t+1, None]], 1).transpose(2, 1, 0, 3) for t in (2, 3)])
     {2, 3, 3, 1, 4},
     {1048, 1049, 1050, 1051, 1060, 1061, 1062, 1063, 24,   25,   26,   27,   1052, 1053, 1054,
      1055, 1064, 1065, 1066, 1067, 28,   29,   30,   31,   1056, 1057, 1058, 1059, 1068, 1069,
      1070, 1071, 32,   33,   34,   35,   1072, 1073, 1074, 1075, 1084, 1085, 1086, 1087, 36,
      37,   38,   39,   1076, 1077, 1078, 1079, 1088, 1089, 1090, 1091, 40,   41,   42,   43,
      1080, 1081, 1082, 1083, 1092, 1093, 1094, 1095, 44,   45,   46,   47}},
    {R"({"window": {"time": 2}, "tensors": {"x": {"variables": ["a", "b"], "stack": "c", "dims": ["c", "time"]}}, "batch": 1})",
     1,
     // stack([cat([A[2:4].transpose(1, 2, 0).reshape(-1, 2), B[2:4].transpose(2, 3, 1,
     // 0).reshape(-1, 2)])])
     {1, 36, 2},
     {24,   36,   25,   37,   26,   38,   27,   39,   28,   40,   29,   41,   30,   42,   31,
      43,   32,   44,   33,   45,   34,   46,   35,   47,   1048, 1072, 1060, 1084, 1049, 1073,
      1061, 1085, 1050, 1074, 1062, 1086, 1051, 1075, 1063, 1087, 1052, 1076, 1064, 1088, 1053,
      1077, 1065, 1089, 1054, 1078, 1066, 1090, 1055, 1079, 1067, 1091, 1056, 1080, 1068, 1092,
      1057, 1081, 1069, 1093, 1058, 1082, 1070, 1094, 1059, 1083, 1071, 1095}},
    {R"({"window": {"lat": 1}, "tensors": {"x": {"variables": ["a", "m"], "stack": "c", "dims": ["lon", "c", "lat"]}}, "batch": 1})",
     2,
     // stack([cat([A[:, 2:3].transpose(2, 0, 1), M[2:3].T[:, None]], 1)])
     {1, 4, 6, 1},
     {8,  20, 32, 44, 56, 2008, 9,  21, 33, 45, 57, 2009,
      10, 22, 34, 46, 58, 2010, 11, 23, 35, 47, 59, 2011}},
    {R"({"window": {"time": 1}, "tensors": {"x": {"variables": ["b"], "dims": ["lon", "time", "lat", "level"]}}, "batch": 1})",
     3,
     // B[3:4].transpose(3, 0, 2, 1)[None]
     {1, 4, 1, 3, 2},
     {1072, 1084, 1076, 1088, 1080, 1092, 1073, 1085, 1077, 1089, 1081, 1093,
      1074, 1086, 1078, 1090, 1082, 1094, 1075, 1087, 1079, 1091, 1083, 1095}},
    {R"({"variables": ["a"], "select": {"lat": ["#2", "#0"], "lon": "#1"}, "window": {"time": 2}, "batch": 2})",
     0,
     // stack([A[0:2][:, [2, 0], 1], A[2:4][:, [2, 0], 1]])
     {2, 2, 2},
     {9, 1, 21, 13, 33, 25, 45, 37}},
    {R"({"variables": ["b"], "select": {"level": "#1", "lon": {"from": "#1", "to": "#3"}}, "window": {"lat": 2, "time": 1}, "batch": 2})",
     1,
     // stack([B[2:3, 1, 0:2, 1:3], B[3:4, 1, 0:2, 1:3]])
     {2, 1, 2, 2},
     {1061, 1062, 1065, 1066, 1085, 1086, 1089, 1090}},
    {R"({"variables": ["m"], "select": {"lat": ["#2", "#0", "#1"]}, "window": {"lat": {"size": 2, "stride": 1, "wrap": true}}, "batch": 3})",
     0,
     // stack([M[[2, 0]], M[[0, 1]], M[[1, 2]]])
     {3, 2, 4},
     {2008, 2009, 2010, 2011, 2000, 2001, 2002, 2003, 2000, 2001, 2002, 2003,
      2004, 2005, 2006, 2007, 2004, 2005, 2006, 2007, 2008, 2009, 2010, 2011}},
    {R"({"variables": ["m"], "select": {"lat": ["#1", "#1"]}, "window": {"lat": 1}, "batch": 2})",
     0,
     // stack([M[1:2], M[1:2]])
     {2, 1, 4},
     {2004, 2005, 2006, 2007, 2004, 2005, 2006, 2007}},
    {R"({"variables": ["a"], "window": {"time": 1}, "batch": {"size": 3, "remainder": "pad"}})",
     1,
     // stack([A[3:4], A[4:5], A[0:1]])
     {3, 1, 3, 4},
     {36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53,
      54, 55, 56, 57, 58, 59, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11}},
    {R"({"variables": ["a"], "window": {"time": 1}, "batch": {"size": 3, "remainder": "pad"}})",
     2,
     // stack([A[1:2], A[2:3], A[3:4]])
     {3, 1, 3, 4},
     {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
      30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47}},
};

struct WindowBatches : WindowViewTest, testing::WithParamInterface<Case> {};

TEST_P(WindowBatches, HoldWhatNumpySays) {
  const Case& c = GetParam();
  SCOPED_TRACE(c.view);
  const auto v = view(c.view);
  EXPECT_EQ(v->shapes(c.batch)[0], c.shape);
  EXPECT_EQ(assembled(*v, 0, c.batch, {{"b", 1000}, {"m", 2000}})[0], c.values);
}
INSTANTIATE_TEST_SUITE_P(Numpy, WindowBatches, testing::ValuesIn(kCases));

TEST_F(WindowViewTest, SamplesAreNumberedRowMajorInTheOrderOfTheWindow) {
  const auto v = view(
      R"({"variables": ["a"], "window": {"lat": {"size": 2, "stride": 1}, "time": 2}, "batch": 4})");
  EXPECT_EQ(v->samples(), 4);
  EXPECT_EQ(provenance_of(v, 0, 0)["windows"],
            parse_json(R"([{"lat": [0, 2], "time": [0, 2]}, {"lat": [0, 2], "time": [2, 4]},
                           {"lat": [1, 3], "time": [0, 2]}, {"lat": [1, 3], "time": [2, 4]}])",
                       ""));
}

TEST_F(WindowViewTest, DefaultVariablesHaveAllDimensionsOfTheWindow) {
  auto names = [&](const char* json) {
    std::vector<std::string> result;
    const auto v = view(json);
    for (const TensorSpec& tensor : v->tensors()) result.push_back(tensor.name);
    return result;
  };
  // Strings and raw bytes are left out: no tensor can hold them.
  EXPECT_THAT(names(R"({"window": {"time": 1}})"), ElementsAre("a", "b", "f"));
  EXPECT_THAT(names(R"({"window": {"lat": 1}})"), ElementsAre("a", "b", "m"));
  EXPECT_THAT(names(R"({"window": {"level": 1, "lat": 1}})"), ElementsAre("b"));
  EXPECT_THAT(names(R"({"variables": ["time"], "window": {"time": 1}})"), ElementsAre("time"));
}

TEST_F(WindowViewTest, RemaindersAndRanks) {
  struct {
    const char* remainder;
    std::int64_t batches, short_rows;
    std::vector<std::int64_t> ranks;  // batches of ranks 0 to 2 of 3
  } const cases[] = {
      {"keep", 3, 1, {1, 1, 1}}, {"drop", 2, 2, {0, 0, 0}}, {"pad", 3, 2, {1, 1, 1}}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.remainder);
    const auto v =
        view(R"({"variables": ["f"], "window": {"time": 1}, "batch": {"size": 2, "remainder": ")" +
             std::string(c.remainder) + "\"}}");
    EXPECT_EQ(v->samples(), 5);
    EXPECT_EQ(v->batches(), c.batches);
    EXPECT_EQ(v->shapes(c.batches - 1)[0][0], c.short_rows);
    for (std::int64_t rank = 0; rank < 3; ++rank)
      EXPECT_EQ(v->rank_batches(rank, 3), c.ranks[static_cast<std::size_t>(rank)]);
    std::int64_t sum = 0;
    for (std::int64_t rank = 0; rank < 2; ++rank) sum += v->rank_batches(rank, 2);
    EXPECT_EQ(sum, std::string(c.remainder) == "keep"   ? 3
                   : std::string(c.remainder) == "drop" ? 2
                                                        : 4);
  }
}

TEST_F(WindowViewTest, PaddedBatchesRepeatTheFirstSamplesOfTheEpoch) {
  const auto v =
      view(R"({"variables": ["f"], "window": {"time": 1}, "batch": {"size": 3, "remainder": "pad"},
                          "order": {"shuffle": "global", "seed": 5}})");
  const auto first = v->batch_samples(1, 0), last = v->batch_samples(1, 1),
             beyond = v->batch_samples(1, 2);
  EXPECT_EQ(last[2], first[0]);
  EXPECT_THAT(beyond, ElementsAre(first[1], first[2], last[0]));
}

TEST_F(WindowViewTest, TheBatchSizeDoesNotChangeTheOrder) {
  std::vector<std::vector<std::int64_t>> orders;
  for (const char* size : {"1", "2", "5"}) {
    const auto v = view(
        R"({"variables": ["a"], "window": {"time": 1, "lat": 1}, "order": {"shuffle": "block", "buffer": 2},
                            "batch": )" +
        std::string(size) + "}");
    std::vector<std::int64_t> order;
    for (std::int64_t b = 0; b < v->batches(); ++b)
      for (std::int64_t s : v->batch_samples(0, b)) order.push_back(s);
    orders.push_back(order);
  }
  EXPECT_EQ(orders[0], orders[1]);
  EXPECT_EQ(orders[0], orders[2]);
}

TEST_F(WindowViewTest, TypesAreCastWhenTheyAreFloats) {
  const auto v =
      view(R"({"variables": ["f", "a", "time"], "window": {"time": 1}, "dtype": "float16"})");
  EXPECT_EQ(v->tensors()[0].type.name(), "float16");
  EXPECT_EQ(v->tensors()[1].type.name(), "int32");
  EXPECT_EQ(v->tensors()[2].type.name(), "datetime64[ns]");
}

struct Wrong {
  const char* json;  // members beside "window": {"time": 1}; a whole view when it begins with '{'
  const char* message;
  ErrorCode code = ErrorCode::invalid_argument;
};

TEST_F(WindowViewTest, WhatTheStoreDoesNotHaveIsNamedWithItsPath) {
  const Wrong wrong[] = {
      {R"({"window": {"tim": 1}})", "window.tim: no dimension 'tim', did you mean 'time'?",
       ErrorCode::not_found},
      {R"({"window": {"zzz": 1}})",
       "window.zzz: no dimension 'zzz'; there are time, lat, lon, level", ErrorCode::not_found},
      {R"("select": {"levl": 500})", "select.levl: no dimension 'levl', did you mean 'level'?",
       ErrorCode::not_found},
      {R"("select": {"level": 501})",
       "select.level: no '501' in 'level', which goes from 500 to 850", ErrorCode::not_found},
      {R"("select": {"time": "2001"})", "select.time: no '2001'", ErrorCode::not_found},
      {R"("select": {"lat": 5})", "select.lat: dimension 'lat' has no coordinate; use positions",
       ErrorCode::not_found},
      {R"("select": {"time": "#0"})", "window.time: \"select\" takes one position of it"},
      {R"("variables": ["a", "bb"])", "variables[1]: no variable 'bb'", ErrorCode::not_found},
      {R"("variables": ["nam"])", "variables[0]: no variable 'nam', did you mean 'name'?",
       ErrorCode::not_found},
      {R"("variables": ["name"])", "variables[0]: 'name' is of type |S8, which no tensor can hold",
       ErrorCode::not_supported},
      {R"("variables": ["rec"])", "variables[0]: 'rec' is of type |V5, which no tensor can hold",
       ErrorCode::not_supported},
      {R"("variables": ["a", "x"], "tensors": {"t": {"variables": ["a"]}})",
       "variables[1]: no variable 'x'", ErrorCode::not_found},
      {R"("tensors": {"x": {"variables": ["aa"]}})", "tensors.x.variables[0]: no variable 'aa'",
       ErrorCode::not_found},
      {R"("tensors": {"x": {"variables": ["a", "q"], "stack": "c"}})",
       "tensors.x.variables[1]: no variable 'q'", ErrorCode::not_found},
      {R"("tensors": {"x": {"variables": ["a"], "offsets": {"lat": [0]}}})",
       "tensors.x.offsets.lat: offsets need a dimension of \"window\""},
      {R"("tensors": {"x": {"variables": ["a"], "offsets": {"tiem": [0]}}})",
       "tensors.x.offsets.tiem: "},
      {R"("tensors": {"x": {"variables": ["a", "f"], "stack": "c"}})",
       "tensors.x: 'a' is int32 and 'f' is float32; give the view a \"dtype\""},
      {R"({"window": {"time": 6}})",
       "window.time: no window of 6 fits: the selection has 5 positions"},
      {R"({"window": {"time": 2, "lat": 4}})",
       "window.lat: no window of 4 fits: the selection has 3 positions"},
      {R"("select": {"time": ["#0"]}, "tensors": {"x": {"variables": ["a"], "offsets": {"time": [1]}}})",
       "window.time: no window of 1 fits: the selection has 1 positions and the offsets need more"},
      {R"("batch": {"size": 6, "remainder": "drop"})",
       "batch.remainder: \"drop\" leaves no batch: there are 5 samples, a batch has 6"},
  };
  for (const Wrong& w : wrong) {
    const std::string json =
        *w.json == '{' ? w.json : R"({"window": {"time": 1}, )" + std::string(w.json) + "}";
    SCOPED_TRACE(json);
    const Error error = refusal(json);
    EXPECT_EQ(error.code(), w.code);
    EXPECT_THAT(error.why(), StartsWith(w.message));
    EXPECT_EQ(error.where(), "file.json");
  }
}

TEST(WindowView, WithManySamplesOpensAtOnceAndPlansAnyBatch) {
  // 2^30 samples and more; nothing in the view or a plan grows with their number.
  MemoryData data;
  data.declare("v", "<f4", {"time", "lat", "lon"}, {1 << 20, 721, 1440}, {1, 721, 1440});
  const auto dataset = data.dataset();
  for (const char* shuffle : {"none", "global", "block"}) {
    SCOPED_TRACE(shuffle);
    const auto v = parse_view(
        dataset,
        R"({"window": {"time": 1, "lat": {"size": 2, "stride": 20}, "lon": {"size": 2, "stride": 45, "wrap": true}},
                                           "batch": 4, "order": {"shuffle": ")" +
            std::string(shuffle) + "\", \"seed\": 3}}");
    EXPECT_EQ(v->samples(), (INT64_C(1) << 20) * 36 * 32);
    ASSERT_GT(v->samples(), 1'000'000'000);
    for (std::int64_t batch : {std::int64_t{0}, std::int64_t{123'456'789}, v->batches() - 1}) {
      const BatchPlan plan = v->plan(1'000'000, batch);
      EXPECT_EQ(plan.samples.size(), 4u);
      for (std::int64_t s : plan.samples) EXPECT_TRUE(s >= 0 && s < v->samples());
      EXPECT_LE(plan.chunks.size(), 4u);
      assembled(*v, 1'000'000, batch);
    }
  }
  const auto plain =
      parse_view(dataset, R"({"window": {"time": 1, "lat": 1, "lon": 1}, "batch": 2})");
  EXPECT_EQ(plain->samples(), (INT64_C(1) << 20) * 721 * 1440);
  EXPECT_EQ(assembled(*plain, 0, plain->batches() - 1)[0],
            (std::vector<std::int64_t>{plain->samples() - 2, plain->samples() - 1}));
}

TEST(WindowView, WithMoreSamplesThanCanBeNumberedIsRefused) {
  MemoryData data;
  const std::int64_t n = INT64_C(1) << 30;
  data.declare("v", "|i1", {"x", "y", "z"}, {n, n, 4}, {1, 1, 4});
  const Error error =
      error_of([&] { parse_view(data.dataset(), R"({"window": {"x": 1, "y": 1, "z": 1}})"); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_THAT(error.why(), HasSubstr("2^60"));
}

TEST(WindowView, OfAnEmptyDimension) {
  MemoryData data;
  data.declare("v", "<f4", {"time", "x"}, {3, 0}, {1, 1});
  EXPECT_THAT(error_of([&] { parse_view(data.dataset(), R"({"window": {"x": 1}})"); }).why(),
              StartsWith("window.x: no window of 1 fits"));
  EXPECT_THAT(error_of([&] {
                parse_view(data.dataset(), R"({"window": {"x": {"size": 1, "wrap": true}}})");
              }).why(),
              StartsWith("window.x: no window of 1 fits"));
  const auto v = parse_view(data.dataset(), R"({"window": {"time": 1}, "batch": 2})");
  EXPECT_EQ(v->shapes(0)[0], (Dims{2, 1, 0}));
  EXPECT_TRUE(v->plan(0, 0).chunks.empty());
}

TEST(WindowView, AStoredDimensionCalledSampleIsRenamed) {
  const auto dataset = MemoryData()
                           .add("t", "<i4", {"sample", "x"}, {4, 3}, counting<std::int32_t>(12))
                           .index("sample", "<i4", std::vector<std::int32_t>{10, 11, 12, 13})
                           .dataset();
  const auto plain = parse_view(dataset, R"({"window": {"sample": 1}, "batch": 2})");
  EXPECT_EQ(plain->tensors()[0].dims, (std::vector<std::string>{"sample", "stored_sample", "x"}));
  EXPECT_EQ(assembled(*plain, 0, 1),
            (std::vector<std::vector<std::int64_t>>{{6, 7, 8, 9, 10, 11}}));
  // Along the batch's samples: where each begins. Not the whole stored coordinate.
  ASSERT_EQ(batch_coordinates(*plain, 0, 1).size(), 1u);
  EXPECT_EQ(batch_coordinates(*plain, 0, 1)[0].name, "sample_start");
  EXPECT_EQ(provenance_of(plain, 0, 1)["coordinates"]["sample"], Json({12, 13}));
  const auto whole = parse_view(dataset, R"({"window": {"x": 1}, "batch": 3})");
  EXPECT_EQ(whole->tensors()[0].dims, (std::vector<std::string>{"sample", "stored_sample", "x"}));
  ASSERT_EQ(batch_coordinates(*whole, 0, 0).size(), 2u);
  EXPECT_EQ(batch_coordinates(*whole, 0, 0)[0].name, "x_start");  // positions: it has no coordinate
  EXPECT_EQ(batch_coordinates(*whole, 0, 0)[1].name, "stored_sample");
  EXPECT_EQ(batch_coordinates(*whole, 0, 0)[1].dims, std::vector<std::string>{"stored_sample"});
  // Joined to channels, it is not a dimension of the tensor.
  const auto joined = parse_view(dataset, R"({"window": {"sample": 1},
      "tensors": {"y": {"variables": ["t"], "stack": "channel", "dims": ["channel", "x"]}}})");
  EXPECT_EQ(joined->tensors()[0].dims, (std::vector<std::string>{"sample", "channel", "x"}));
  EXPECT_EQ(batch_coordinates(*joined, 0, 2)[0].name, "sample");
  // In "dims" it goes by its stored name.
  const auto turned = parse_view(dataset, R"({"window": {"sample": 2},
      "tensors": {"y": {"variables": ["t"], "dims": ["x", "sample"]}}})");
  EXPECT_EQ(turned->tensors()[0].dims, (std::vector<std::string>{"sample", "x", "stored_sample"}));
}

TEST(WindowView, NamesThatDimensionsHaveAlready) {
  const auto dataset =
      MemoryData()
          .add("t", "<i4", {"sample", "stored_sample"}, {4, 3}, counting<std::int32_t>(12))
          .add("u", "<i4", {"time", "x"}, {4, 3}, counting<std::int32_t>(12))
          .dataset();
  const auto why = [&](const std::string& json) {
    return error_of([&] { parse_view(dataset, json); }).why();
  };
  EXPECT_NE(why(R"({"variables": ["t"], "window": {"sample": 1}})").find("'stored_sample'"),
            std::string::npos);
  EXPECT_NE(
      why(R"({"window": {"time": 1}, "tensors": {"y": {"variables": ["u"], "stack": "sample"}}})")
          .find("'sample'"),
      std::string::npos);
  EXPECT_NE(
      why(R"({"window": {"time": 1}, "tensors": {"y": {"variables": ["u"], "dims": ["sample", "x", "time"]}}})")
          .find("leaves out"),
      std::string::npos);
  for (const char* name : {"x", "sample"}) {
    const std::string view = R"({"window": {"time": 1}, "tensors": {")" + std::string(name) +
                             R"(": {"variables": ["u"]}})";
    EXPECT_EQ(parse_view(dataset, view + "}")->tensors()[0].name, name);
    EXPECT_NE(why(view + R"(, "formats": ["zarr"]})").find("\"zarr\""), std::string::npos);
  }
}

}  // namespace window_view_test
}  // namespace batchfs
