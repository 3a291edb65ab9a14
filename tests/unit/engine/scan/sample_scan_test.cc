#include "engine/scan/sample_scan.h"

#include <cmath>

#include <gtest/gtest.h>

#include "engine/base/log.h"
#include "engine/view/samples/missing.h"
#include "tests/unit/engine/dataset/memory_data.h"
#include "tests/unit/engine/view/provenance_of.h"

namespace batchfs {
namespace sample_scan_test {

std::shared_ptr<const Dataset> dataset() {
  std::vector<float> t(6 * 4, 1);
  t[2 * 4 + 3] = NAN;
  return MemoryData()
      .add("t", "<f4", {"time", "x"}, {6, 4}, t)
      .add("n", "<i4", {"time"}, {6}, counting<std::int32_t>(6))
      .dataset();
}

std::shared_ptr<const View> view(const std::string& json) {
  return View::parse(dataset(), json, "v", "test");
}

TEST(SampleScan, FindsTheWindowsWithoutNan) {
  const auto unknown = view(
      R"({"variables": ["t", "n"], "window": {"time": 1, "x": 2}, "missing": {"nan": "skip"}})");
  ASSERT_TRUE(unknown->needs_scan());
  EXPECT_EQ(unknown->samples(), 12);
  EXPECT_THROW(unknown->plan(0, 0), Error);
  EXPECT_EQ(scan_cost(*unknown).chunks, 1);  // integers miss nothing
  Log log;
  Engine engine({.threads = 2, .prefetch = false}, log);
  const auto index = std::make_shared<const SampleIndex>(scan_samples(engine, *unknown));
  EXPECT_EQ(index->samples(), 11);
  EXPECT_EQ(index->window(4), 4);
  EXPECT_EQ(index->window(5), 6);  // window 5 is time 2, x 2 to 3
  const auto known = with_samples(*unknown, index);
  EXPECT_FALSE(known->needs_scan());
  EXPECT_EQ(known->samples(), 11);
  EXPECT_EQ(known->batches(), 11);
  EXPECT_EQ(known->plan(0, 5).samples, (std::vector<std::int64_t>{5}));
  EXPECT_EQ(provenance_of(known, 0, 5)["windows"][0]["time"], Json({3, 4}));
  const auto every = with_samples(*unknown, nullptr);
  EXPECT_FALSE(every->needs_scan());
  EXPECT_EQ(every->samples(), 12);
}

TEST(SampleScan, NothingLeftIsAnError) {
  const auto unknown =
      view(R"({"variables": ["t"], "window": {"time": 6}, "missing": {"nan": "skip"}})");
  Log log;
  Engine engine({.threads = 1, .prefetch = false}, log);
  const auto index = std::make_shared<const SampleIndex>(scan_samples(engine, *unknown));
  EXPECT_EQ(index->samples(), 0);
  const Error error = error_of([&] { with_samples(*unknown, index); });
  EXPECT_NE(error.why().find("leaves no sample"), std::string::npos) << error.why();
}

TEST(SampleScan, ViewsThatSkipNothingNeedNone) {
  const auto keeps = view(R"({"variables": ["t"], "window": {"time": 1}})");
  EXPECT_FALSE(keeps->needs_scan());
  EXPECT_EQ(keeps->plan(0, 2).samples.size(), 1u);
}

}  // namespace sample_scan_test
}  // namespace batchfs
