#include "engine/view/mixed_view.h"

#include <set>

#include <gmock/gmock.h>

#include "engine/view/describe/resolved.h"
#include "engine/view/describe/schema.h"
#include "engine/view/samples/sample_index.h"
#include "tests/unit/engine/view/assembled.h"
#include "tests/unit/engine/view/provenance_of.h"

namespace batchfs {
namespace mixed_view_test {

using testing::ElementsAre;
using testing::HasSubstr;

/// Two data sets of 6 and 4 steps, with the labels 0.. and 100..
struct MixedViewTest : testing::Test {
  MixedViewTest() {
    one.declare("a", "<i4", {"time", "x"}, {6, 3}, {4, 3})
        .index<std::int32_t>("time", "<i4", {0, 1, 2, 3, 4, 5});
    two.declare("a", "<i4", {"time", "x"}, {4, 3}, {3, 3})
        .index<std::int32_t>("time", "<i4", {100, 101, 102, 103});
  }

  std::shared_ptr<const View> mixture(
      const std::string& more = "", const std::string& second = R"("window": {"time": 1})") const {
    MixSpec spec = parse_mix_spec(
        R"({"mix": {"one": {"view": "1"}, "two": {"view": "2"}})" + more + "}", "m", "f");
    const ViewOptions options{.mixed = MixedIn{spec.view.batch_size, spec.view.formats}};
    return make_mixed_view(
        spec, {View::parse(one.dataset(),
                           R"({"window": {"time": 1}, "batch": 3, "order": {"shuffle": "global"}})",
                           "1", "1", options),
               View::parse(two.dataset(), "{" + second + "}", "2", "2", options)});
  }

  MemoryData one, two;
};

TEST_F(MixedViewTest, HasTheSamplesOfAllViews) {
  const auto view = mixture(R"(, "batch": 4)");
  EXPECT_EQ(view->samples(), 10);
  EXPECT_EQ(view->batches(), 3);
  std::set<std::int64_t> seen;
  for (std::int64_t b = 0; b < 3; ++b)
    for (const std::int64_t sample : view->batch_samples(0, b)) seen.insert(sample);
  EXPECT_EQ(seen.size(), 10u);
}

TEST_F(MixedViewTest, PlansTakeEachSampleFromItsView) {
  const auto view = mixture(R"(, "batch": {"size": 4, "remainder": "pad"})");
  for (std::int64_t b = 0; b < 3; ++b) {
    const BatchPlan plan = view->plan(1, b);
    EXPECT_EQ(plan.shapes, view->shapes(b));
    EXPECT_EQ(plan.samples, view->batch_samples(1, b));
    const std::vector<std::int64_t> values = assembled(*view, 1, b).at(0);
    for (std::size_t i = 0; i < 4; ++i) {
      const std::int64_t step = plan.samples[i] < 6 ? plan.samples[i] : plan.samples[i] - 6;
      for (std::size_t x = 0; x < 3; ++x)
        EXPECT_EQ(values[i * 3 + x], step * 3 + static_cast<std::int64_t>(x));
    }
  }
}

TEST_F(MixedViewTest, LabelsAreThoseOfOneViewAfterTheOther) {
  const auto view = mixture(R"(, "batch": 10)");
  ASSERT_EQ(view->coordinates().size(), 1u);
  EXPECT_THAT(values_of<std::int32_t>(*view->coordinates()[0].values),
              ElementsAre(0, 1, 2, 3, 4, 5, 100, 101, 102, 103));
  const std::vector<std::int64_t> windows = view->batch_windows(0, 0);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(windows[10 + i], windows[i]);
}

TEST_F(MixedViewTest, DescriptionsNameTheViews) {
  const auto view = mixture(R"(, "batch": 10)");
  const Json schema = view_schema(*view), provenance = provenance_of(view, 0, 0);
  EXPECT_EQ(schema["components"][1]["first"], 6);
  EXPECT_EQ(schema["mixing"], "sample");
  for (std::size_t i = 0; i < 10; ++i) {
    const auto sample = provenance["samples"][i].get<std::int64_t>();
    EXPECT_EQ(provenance["components"][i], sample < 6 ? "one" : "two");
    EXPECT_EQ(provenance["component_samples"][i], sample % 6);
    EXPECT_EQ(provenance["coordinates"]["time"][i], sample < 6 ? sample : 94 + sample);
  }
  EXPECT_EQ(resolved_view(*view)["mix"]["one"]["view"]["order"]["shuffle"], "global");
  EXPECT_EQ(resolved_view(*view)["batch"]["block"], 1024);
}

TEST_F(MixedViewTest, ByBatchABatchIsOfOneView) {
  const auto view = mixture(R"(, "batch": {"size": 4, "mixing": "batch"})");
  EXPECT_EQ(view->batches(), 3);
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::vector<std::int64_t> samples = view->batch_samples(0, b);
    ASSERT_EQ(samples.size(), 4u);
    for (const std::int64_t sample : samples) EXPECT_EQ(sample < 6, samples[0] < 6);
  }
}

TEST_F(MixedViewTest, Refusals) {
  EXPECT_THAT(
      error_of([&] { mixture("", R"("window": {"time": 2})"); }).why(),
      HasSubstr("mix.two: the shape of a sample of 'a' is (1, 3) in 'one' and (2, 3) in 'two'"));
  EXPECT_THAT(error_of([&] { mixture(R"(, "batch": {"size": 11, "remainder": "drop"})"); }).why(),
              HasSubstr("\"drop\" leaves no batch"));
  EXPECT_THROW(with_samples(*mixture(),
                            std::make_shared<const SampleIndex>(std::vector<std::uint64_t>{1}, 1)),
               Error);
}

}  // namespace mixed_view_test
}  // namespace batchfs
