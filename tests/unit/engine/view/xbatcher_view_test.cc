#include <gmock/gmock.h>

#include "engine/view/view.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace xbatcher_view_test {

using testing::ElementsAre;
using testing::StartsWith;

struct XbatcherViewTest : testing::Test {
  XbatcherViewTest() {
    data.declare("a", "<i4", {"time", "lat", "lon"}, {5, 3, 4}, {2, 2, 4})
        .declare("m", "<i4", {"lat", "lon"}, {3, 4}, {3, 4})
        .declare("name", "|S8", {"time"}, {5}, {5});
    dataset = data.dataset();
  }
  std::shared_ptr<const View> view(const std::string& json) const {
    return parse_view(dataset, json);
  }
  MemoryData data;
  std::shared_ptr<const Dataset> dataset;
};

struct Case {
  const char* view;
  std::int64_t batches, batch;
  std::vector<std::string> dims;
  Dims shape;
  std::vector<std::int64_t> values;
};

// ds = xarray.Dataset({"a": (("time", "lat", "lon"), arange(60).reshape(5, 3, 4)),
//                      "m": (("lat", "lon"), 2000 + arange(12).reshape(3, 4))})
// g = xbatcher.BatchGenerator(ds[variables], **form): len(g), and dims, shape and values of
// g[batch] (0.4.0)
const Case kCases[] = {
    {R"({"variables": ["a"], "xbatcher": {"input_dims": {"time": 2}}})",
     2,
     1,
     {"sample", "time"},
     {12, 2},
     {24, 36, 25, 37, 26, 38, 27, 39, 28, 40, 29, 41,
      30, 42, 31, 43, 32, 44, 33, 45, 34, 46, 35, 47}},
    {R"({"variables": ["a"], "xbatcher": {"input_dims": {"lat": 2, "lon": 3}, "input_overlap": {"lat": 1, "lon": 2}}})",
     4,
     3,
     {"time", "lat", "lon"},
     {5, 2, 3},
     {5,  6,  7,  9,  10, 11, 17, 18, 19, 21, 22, 23, 29, 30, 31,
      33, 34, 35, 41, 42, 43, 45, 46, 47, 53, 54, 55, 57, 58, 59}},
    {R"({"variables": ["a"], "xbatcher": {"input_dims": {"lon": 2, "lat": 3}}})",
     2,
     1,
     {"time", "lat", "lon"},
     {5, 3, 2},
     {2,  3,  6,  7,  10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30,
      31, 34, 35, 38, 39, 42, 43, 46, 47, 50, 51, 54, 55, 58, 59}},
    {R"({"variables": ["m"], "xbatcher": {"input_dims": {"lat": 2, "lon": 2}, "input_overlap": {"lat": 1}, "concat_input_dims": true}})",
     1,
     0,
     {"input_batch", "lat_input", "lon_input"},
     {4, 2, 2},
     {2000, 2001, 2004, 2005, 2002, 2003, 2006, 2007, 2004, 2005, 2008, 2009, 2006, 2007, 2010,
      2011}},
    {R"({"variables": ["a"], "xbatcher": {"input_dims": {"lat": 3, "lon": 2}, "batch_dims": {"time": 2}}})",
     4,
     1,
     {"time", "lat", "lon"},
     {2, 3, 2},
     {2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23}},
    {R"({"variables": ["a"], "xbatcher": {"input_dims": {"lat": 3, "lon": 4}, "batch_dims": {"time": 2}, "concat_input_dims": true}})",
     2,
     0,
     {"sample", "lat_input", "lon_input"},
     {2, 3, 4},
     {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
    {R"({"variables": ["m", "a"], "xbatcher": {"input_dims": {"lon": 2}, "batch_dims": {"time": 2}}})",
     4,
     1,
     {"sample", "lon"},
     {6, 2},
     {2002, 2003, 2002, 2003, 2006, 2007, 2006, 2007, 2010, 2011, 2010, 2011}},
    {R"({"variables": ["m", "a"], "xbatcher": {"input_dims": {"lon": 4, "lat": 3}, "batch_dims": {"time": 2}, "concat_input_dims": true}})",
     2,
     1,
     {"sample", "lon_input", "lat_input"},
     {2, 4, 3},
     {2000, 2004, 2008, 2001, 2005, 2009, 2002, 2006, 2010, 2003, 2007, 2011,
      2000, 2004, 2008, 2001, 2005, 2009, 2002, 2006, 2010, 2003, 2007, 2011}},
    {R"({"variables": ["a"], "xbatcher": {"input_dims": {"time": 2, "lat": 3}, "input_overlap": {"time": 1}, "batch_dims": {"time": 2}, "concat_input_dims": true}})",
     2,
     1,
     {"sample", "time_input", "lat_input"},
     {8, 2, 3},
     {24, 28, 32, 36, 40, 44, 25, 29, 33, 37, 41, 45, 26, 30, 34, 38,
      42, 46, 27, 31, 35, 39, 43, 47, 36, 40, 44, 48, 52, 56, 37, 41,
      45, 49, 53, 57, 38, 42, 46, 50, 54, 58, 39, 43, 47, 51, 55, 59}},
};

struct XbatcherBatches : XbatcherViewTest, testing::WithParamInterface<Case> {};

TEST_P(XbatcherBatches, AreThoseOfXbatcher) {
  const Case& c = GetParam();
  SCOPED_TRACE(c.view);
  const auto v = view(c.view);
  EXPECT_EQ(v->batches(), c.batches);
  EXPECT_EQ(v->samples(), c.batches);
  EXPECT_EQ(v->batch_size(), 1);
  EXPECT_EQ(v->tensors()[0].dims, c.dims);
  EXPECT_EQ(v->shapes(c.batch)[0], c.shape);
  EXPECT_EQ(assembled(*v, 0, c.batch, {{"m", 2000}})[0], c.values);
  EXPECT_THAT(v->batch_samples(7, c.batch), ElementsAre(c.batch));
}
INSTANTIATE_TEST_SUITE_P(Xbatcher, XbatcherBatches, testing::ValuesIn(kCases));

TEST_F(XbatcherViewTest, SelectionComesFirst) {
  const auto v = view(R"({"variables": ["a"], "select": {"lon": "#1", "lat": ["#2", "#0"]},
                          "xbatcher": {"input_dims": {"time": 2, "lat": 2}}})");
  EXPECT_EQ(v->batches(), 2);
  // arange(60).reshape(5, 3, 4)[2:4][:, [2, 0], 1].ravel()
  EXPECT_THAT(assembled(*v, 0, 1)[0], ElementsAre(33, 25, 45, 37));
}

TEST_F(XbatcherViewTest, WhatIsWrongIsNamedWithItsPath) {
  struct {
    const char *members, *message;
    ErrorCode code = ErrorCode::invalid_argument;
  } const cases[] = {
      {R"("input_dims": {"tim": 2})",
       "xbatcher.input_dims.tim: no dimension 'tim', did you mean 'time'?", ErrorCode::not_found},
      {R"("input_dims": {"time": 2}, "batch_dims": {"lt": 2})",
       "xbatcher.batch_dims.lt: no dimension 'lt', did you mean 'lat'?", ErrorCode::not_found},
      {R"("input_dims": {"time": 2}, "input_overlap": {"tme": 1})",
       "xbatcher.input_overlap.tme: no dimension 'tme', did you mean 'time'?",
       ErrorCode::not_found},
      {R"("input_dims": {"time": 6})", "xbatcher.input_dims.time: 6 is more than the 5 there are"},
      {R"("input_dims": {"time": 2}, "input_overlap": {"time": 2})",
       "xbatcher.input_dims.time: the overlap 2 is not smaller than the size 2"},
  };
  for (const auto& c : cases) {
    const std::string json =
        R"({"variables": ["a"], "xbatcher": {)" + std::string(c.members) + "}}";
    SCOPED_TRACE(json);
    const Error error = error_of([&] { view(json); });
    EXPECT_EQ(error.code(), c.code);
    EXPECT_THAT(error.why(), StartsWith(c.message));
    EXPECT_EQ(error.where(), "file.json");
  }
  EXPECT_THAT(error_of([&] {
                view(R"({"select": {"time": "#0"}, "xbatcher": {"input_dims": {"time": 1}}})");
              }).why(),
              StartsWith("xbatcher.input_dims.time: \"select\" takes one position"));
  EXPECT_THAT(error_of([&] {
                view(R"({"variables": ["b"], "xbatcher": {"input_dims": {"time": 1}}})");
              }).why(),
              StartsWith("variables[0]: no variable 'b'"));
  EXPECT_THAT(error_of([&] {
                view(R"({"variables": ["name"], "xbatcher": {"input_dims": {"time": 1}}})");
              }).why(),
              StartsWith("variables[0]: 'name' is of type |S8"));
}

TEST(XbatcherView, OfHugeArraysCostsNothing) {
  MemoryData data;
  const std::int64_t n = INT64_C(1) << 30;
  data.declare("v", "|i1", {"x", "y"}, {n, n}, {1, 1024});
  const auto v = parse_view(data.dataset(), R"({"xbatcher": {"input_dims": {"x": 1, "y": 1024}}})");
  EXPECT_EQ(v->batches(), n * (n / 1024));
  EXPECT_EQ(assembled(*v, 0, v->batches() - 1)[0].back(), n * n - 1);
}

TEST(XbatcherView, TooManyPatchesAreRefusedNotPlanned) {
  MemoryData data;
  const std::int64_t n = INT64_C(1) << 30;
  data.declare("v", "|i1", {"x", "y", "z"}, {n, n, 4}, {1, 1, 4});
  auto refusal = [&](const char* json) {
    return error_of([&] { parse_view(data.dataset(), json); });
  };
  const Error batch =
      refusal(R"({"xbatcher": {"input_dims": {"x": 1, "y": 1}, "concat_input_dims": true}})");
  EXPECT_EQ(batch.code(), ErrorCode::not_supported);
  EXPECT_THAT(batch.why(), StartsWith("xbatcher: more than 16777216 patches"));
  const Error batches = refusal(R"({"xbatcher": {"input_dims": {"x": 1, "y": 1, "z": 1}}})");
  EXPECT_EQ(batches.code(), ErrorCode::not_supported);
  EXPECT_THAT(batches.why(), StartsWith("xbatcher: more than 2^60 batches"));
}

TEST(XbatcherView, AStoredDimensionCalledSample) {
  const auto dataset =
      MemoryData().declare("t", "<i4", {"sample", "y", "x"}, {6, 4, 4}, {6, 4, 4}).dataset();
  // xbatcher: cannot create a new dimension with the same name as an existing dimension
  const Error error =
      error_of([&] { parse_view(dataset, R"({"xbatcher": {"input_dims": {"x": 2}}})"); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_NE(error.why().find("'sample'"), std::string::npos);
  EXPECT_EQ(
      parse_view(dataset, R"({"xbatcher": {"input_dims": {"x": 2, "y": 4}}})")->tensors()[0].dims,
      (std::vector<std::string>{"sample", "y", "x"}));
}

}  // namespace xbatcher_view_test
}  // namespace batchfs
