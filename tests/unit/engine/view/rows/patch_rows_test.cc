#include "engine/view/rows/patch_rows.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "engine/base/dims.h"
#include "engine/dataset/selector.h"
#include "engine/view/axes.h"
#include "engine/view/row_range.h"
#include "engine/view/spec.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace patch_rows_test {

using testing::ElementsAre;
using testing::StartsWith;

struct PatchRowsTest : testing::Test {
  const std::shared_ptr<const Dataset> dataset =
      MemoryData().declare("v", "<f4", {"t", "y", "x"}, {5, 4, 7}, {5, 4, 7}).dataset();
  ViewAxes axes{*dataset, {}};

  PatchRows rows(const XbatcherSpec& spec, std::vector<std::string> others = {}) {
    return {*dataset, spec, std::move(others), axes};
  }
  Error refusal(const XbatcherSpec& spec) {
    return error_of([&] { rows(spec); });
  }
};

std::vector<Dims> starts(const PatchRows& rows, std::int64_t batch) {
  return rows.starts_in(0, batch, {0, rows.row_count(batch)});
}

TEST_F(PatchRowsTest, ABatchIsAPatchTheLastDimensionFastest) {
  const PatchRows all =
      rows({.input_dims = {{"y", 2}, {"x", 3}}, .input_overlap = {{"x", 1}}}, {"t"});
  EXPECT_EQ(all.batches(), 2 * 3);
  EXPECT_EQ(all.samples(), 6);
  EXPECT_EQ(all.row_count(4), 1);
  EXPECT_THAT(starts(all, 1), ElementsAre(Dims{0, 2}));
  EXPECT_THAT(starts(all, 4), ElementsAre(Dims{2, 2}));
  EXPECT_THAT(all.samples_in(0, 4, {0, 1}), ElementsAre(4));
  ASSERT_EQ(axes.windows.size(), 2u);
  EXPECT_EQ(axes.windows[1].name, "x");
  EXPECT_EQ(axes.windows[1].size, 3);
  EXPECT_EQ(all.sliced_number("x"), 1);
  EXPECT_EQ(all.sliced_number("t"), -1);
  EXPECT_EQ(all.extent(axes, "x"), 3);
  EXPECT_EQ(all.extent(axes, "t"), 5);
  EXPECT_FALSE(all.stacks());
  ViewAxes own(*dataset, {});
  EXPECT_TRUE(PatchRows(*dataset, {.input_dims = {{"x", 2}}}, {"t", "y"}, own).stacks());
}

TEST_F(PatchRowsTest, BatchDimensionsComeFirst) {
  const PatchRows all = rows({.input_dims = {{"y", 4}}, .batch_dims = {{"t", 2}}}, {"t", "x"});
  EXPECT_EQ(all.sliced_number("t"), 0);
  EXPECT_EQ(all.batches(), 2);
  EXPECT_THAT(starts(all, 1), ElementsAre(Dims{2, 0}));
}

TEST_F(PatchRowsTest, AConcatenatedBatchIsAProductOfPatches) {
  const PatchRows all = rows({.input_dims = {{"y", 2}, {"x", 3}},
                              .input_overlap = {{"x", 1}},
                              .batch_dims = {{"t", 2}},
                              .concat_input_dims = true},
                             {"t"});
  EXPECT_EQ(all.batches(), 2);
  EXPECT_EQ(all.sample_count(1), 1);
  EXPECT_THAT(starts(all, 1), ElementsAre(Dims{2, 0, 0}, Dims{2, 0, 2}, Dims{2, 0, 4},
                                          Dims{2, 2, 0}, Dims{2, 2, 2}, Dims{2, 2, 4}));
  EXPECT_THAT(all.starts_in(0, 1, {2, 3}),
              ElementsAre(Dims{2, 0, 4}, Dims{2, 2, 0}, Dims{2, 2, 2}));
  Dims first(3);
  all.starts_of(1, first.begin());
  EXPECT_EQ(first, (Dims{2, 0, 0}));
  EXPECT_TRUE(all.stacks());
}

TEST_F(PatchRowsTest, ABatchLengthOfAnInputDimensionCountsPatches) {
  const PatchRows all = rows({.input_dims = {{"t", 2}},
                              .input_overlap = {{"t", 1}},
                              .batch_dims = {{"t", 2}},
                              .concat_input_dims = true});
  EXPECT_EQ(all.batches(), 2);
  EXPECT_THAT(starts(all, 0), ElementsAre(Dims{0}, Dims{1}));
  EXPECT_THAT(starts(all, 1), ElementsAre(Dims{2}, Dims{3}));
}

TEST_F(PatchRowsTest, RefusalsNameTheirPath) {
  const struct {
    XbatcherSpec spec;
    const char* why;
  } cases[] = {
      {{.input_dims = {{"y", 5}}}, "xbatcher.input_dims.y: 5 is more than the 4 there are"},
      {{.input_dims = {{"y", 2}}, .batch_dims = {{"x", 8}}},
       "xbatcher.batch_dims.x: 8 is more than the 7 there are"},
      {{.input_dims = {{"x", 2}}, .input_overlap = {{"x", 2}}},
       "xbatcher.input_dims.x: the overlap 2 is not smaller than the size 2"},
      {{.input_dims = {{"t", 3}}, .batch_dims = {{"t", 2}}, .concat_input_dims = true},
       "xbatcher.batch_dims.t: xbatcher has a batch without patches here and fails"},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(refusal(each.spec).code(), ErrorCode::invalid_argument) << each.why;
    EXPECT_THAT(refusal(each.spec).why(), StartsWith(each.why));
  }
  const Error unknown = refusal({.input_dims = {{"x", 2}}, .input_overlap = {{"z", 1}}});
  EXPECT_EQ(unknown.code(), ErrorCode::not_found);
  EXPECT_THAT(unknown.why(), StartsWith("xbatcher.input_overlap.z: no dimension 'z'"));
  ViewAxes selected(*dataset, {{"t", parse_selector("#1", "select.t")}});
  const Error dropped = error_of([&] {
    PatchRows(*dataset, {.input_dims = {{"t", 1}}}, {}, selected);
  });
  EXPECT_EQ(dropped.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(dropped.why(), StartsWith("xbatcher.input_dims.t: \"select\" takes one position"));
}

TEST(FindDim, IsTheValueOfADimension) {
  const std::vector<std::pair<std::string, std::int64_t>> list = {{"a", 3}, {"b", 4}};
  ASSERT_NE(find_dim(list, "b"), nullptr);
  EXPECT_EQ(*find_dim(list, "b"), 4);
  EXPECT_EQ(find_dim(list, "c"), nullptr);
}

}  // namespace patch_rows_test
}  // namespace batchfs
