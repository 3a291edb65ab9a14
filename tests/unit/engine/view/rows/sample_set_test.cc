#include "engine/view/rows/sample_set.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "engine/view/rows/window_rows.h"
#include "engine/view/samples/sample_index.h"
#include "engine/view/spec.h"
#include "engine/view/view.h"
#include "tests/unit/engine/view/assembled.h"
#include "tests/unit/engine/view/view_folder.h"

namespace batchfs {
namespace sample_set_test {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Starts = std::vector<std::int64_t>;

/// An index of these windows.
std::shared_ptr<const SampleIndex> only(const Starts& left, std::int64_t windows) {
  MissingMarks marks(windows);
  for (std::int64_t w = 0; w < windows; ++w)
    if (std::find(left.begin(), left.end(), w) == left.end()) marks.mark(w);
  return std::make_shared<const SampleIndex>(marks.index());
}

std::vector<Starts> starts_of(const SampleSet& set, std::size_t dims = 2) {
  std::vector<Starts> all;
  for (std::int64_t sample = 0; sample < set.samples; ++sample)
    set.starts(sample, all.emplace_back(dims).data());
  return all;
}

struct SampleSetTest : testing::Test {
  const std::shared_ptr<const Dataset> dataset =
      MemoryData()
          .declare("v", "<f4", {"y", "x"}, {10, 4}, {10, 4})
          .add<std::int8_t>("m", "|i1", {"z", "x"}, {2, 4}, {1, 0, 1, 1, 0, 0, 0, 1})
          .declare("u", "<f4", {"z", "x"}, {2, 4}, {2, 4})
          .dataset();
  std::shared_ptr<const View> view(const std::string& json) const {
    return folder.parse(dataset, json);
  }
  /// The set when a scan has found these windows of a view.
  static SampleSet scanned(const View& view, std::shared_ptr<const SampleIndex> found) {
    return view.windows()->set().scanned_by(std::move(found), view.spec());
  }
  const ViewFolder folder;
};

constexpr const char* kGrid = R"({"window": {"y": {"size": 2, "stride": 3},
    "x": {"size": 1, "stride": 2}}, "missing": {"nan": "skip"}})";
constexpr const char* kMasked = R"({"variables": ["u"], "window": {"z": 1, "x": 1},
    "samples": {"mask": {"variable": "m"}}, "missing": {"nan": "skip"}})";

TEST_F(SampleSetTest, WindowsOfAGridBeginAtMultiplesOfTheStride) {
  const auto v = view(kGrid);
  const SampleSet& set = v->windows()->set();
  EXPECT_THAT(starts_of(set), ElementsAre(Starts{0, 0}, Starts{0, 2}, Starts{3, 0}, Starts{3, 2},
                                          Starts{6, 0}, Starts{6, 2}));
  EXPECT_EQ(set.windows_to_scan(), 6);
  EXPECT_EQ(set.list(), nullptr);
  const auto before = view(R"({"window": {"y": {"size": 2, "stride": 3}}, "tensors": {"t": {
      "variables": ["v"], "offsets": {"y": [-1, 2]}}}})");
  EXPECT_THAT(starts_of(before->windows()->set(), 1), ElementsAre(Starts{3}, Starts{6}));
  EXPECT_THAT(before->windows()->set().ranges, ElementsAre(Pair(-1, 2)));
}

TEST_F(SampleSetTest, RestrictionsLeaveWindowsAndAreCounted) {
  const auto where =
      view(R"({"window": {"y": 2, "x": 1}, "samples": {"where": {"x": ["#3", "#1"]}}})");
  const SampleSet& one = where->windows()->set();
  EXPECT_EQ(one.all_windows, 20);
  EXPECT_EQ(one.windows, 10);
  EXPECT_EQ(one.samples, 10);
  EXPECT_THAT(one.dropped, ElementsAre(Pair("where", 10)));
  EXPECT_EQ(one.index, nullptr);
  EXPECT_EQ(starts_of(one)[3], (Starts{2, 3}));
  const auto mask = view(kMasked);
  const SampleSet& joint = mask->windows()->set();
  EXPECT_EQ(joint.windows, 8);
  EXPECT_EQ(joint.allowed_windows(), 4);
  EXPECT_THAT(joint.dropped, ElementsAre(Pair("mask", 4)));
  EXPECT_THAT(starts_of(joint),
              ElementsAre(Starts{0, 0}, Starts{0, 2}, Starts{0, 3}, Starts{1, 3}));
}

TEST_F(SampleSetTest, AScanLeavesWindowsThatLackNothing) {
  const auto v = view(kGrid);
  const SampleSet set = scanned(*v, only({1, 4}, 6));
  EXPECT_TRUE(set.scanned);
  EXPECT_FALSE(v->windows()->set().scanned);
  EXPECT_THAT(starts_of(set), ElementsAre(Starts{0, 2}, Starts{6, 0}));
  EXPECT_THAT(set.dropped, ElementsAre(Pair("missing", 4)));
  EXPECT_EQ(set.allowed_windows(), 6);
  const SampleSet joint = scanned(*view(kMasked), only({1, 2, 3, 4, 5}, 8));
  EXPECT_THAT(starts_of(joint), ElementsAre(Starts{0, 2}, Starts{0, 3}));
  EXPECT_THAT(joint.dropped, ElementsAre(Pair("mask", 4), Pair("missing", 2)));
  const SampleSet estimated = scanned(*v, nullptr);
  EXPECT_TRUE(estimated.scanned);
  EXPECT_EQ(estimated.samples, 6);
  EXPECT_THAT(estimated.dropped, IsEmpty());
}

TEST_F(SampleSetTest, AListHasItsRowsInTheirOrder) {
  folder.write("rows.csv", "x,y\n#3,#2\n#0,#0\n#3,#2\n#3,#1\n");
  const auto v = view(R"({"window": {"y": 2, "x": 1}, "samples": {"list": "rows.csv"},
                          "missing": {"nan": "skip"}})");
  const SampleSet& set = v->windows()->set();
  EXPECT_THAT(starts_of(set), ElementsAre(Starts{2, 3}, Starts{0, 0}, Starts{2, 3}, Starts{1, 3}));
  EXPECT_EQ(set.windows_to_scan(), 6);  // y of 0 to 2, x of 0 and 3
  const SampleSet left = scanned(*v, only({0, 1, 2, 3, 4}, 6));
  EXPECT_THAT(starts_of(left), ElementsAre(Starts{0, 0}, Starts{1, 3}));
  EXPECT_THAT(left.dropped, ElementsAre(Pair("missing", 2)));
  EXPECT_EQ(left.all_windows, 4);
  EXPECT_EQ(error_of([&] { scanned(*v, only({0}, 4)); }).code(), ErrorCode::internal);
  EXPECT_EQ(error_of([&] { scanned(*v, only({1}, 6)); }).code(), ErrorCode::invalid_argument);
}

TEST_F(SampleSetTest, AScanOfAnotherViewOrOneThatLeavesNothingIsRefused) {
  const auto grid = view(kGrid), masked = view(kMasked);
  EXPECT_EQ(error_of([&] { scanned(*grid, only({1}, 7)); }).code(), ErrorCode::internal);
  const Error none = error_of([&] { scanned(*grid, only({}, 6)); });
  EXPECT_EQ(none.code(), ErrorCode::invalid_argument);
  EXPECT_EQ(none.why(), "missing: \"skip\" leaves no sample: each of the 6 windows holds a NaN");
  EXPECT_EQ(error_of([&] {
              scanned(*masked, only({1, 4}, 8));
            }).code(),
            ErrorCode::invalid_argument);
}

}  // namespace sample_set_test
}  // namespace batchfs
