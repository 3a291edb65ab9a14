#include "engine/view/rows/mixed_rows.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "engine/base/dims.h"
#include "engine/view/rows/window_rows.h"
#include "engine/view/view.h"
#include "tests/unit/engine/dataset/memory_data.h"
#include "tests/unit/engine/view/mix/mixture.h"

namespace batchfs {
namespace mixed_rows_test {

using testing::ElementsAre;
using testing::StartsWith;
using List = std::vector<std::int64_t>;

std::shared_ptr<const Dataset> data(std::int64_t steps, std::int32_t first_label) {
  std::vector<std::int32_t> labels = counting<std::int32_t>(steps);
  for (std::int32_t& label : labels) label += first_label;
  return MemoryData()
      .declare("a", "<f4", {"time", "x"}, {steps, 3}, {2, 3})
      .declare("b", "<f4", {"time"}, {steps}, {2})
      .index("time", "<i4", labels)
      .dataset();
}

/// Views of 6 and of 4 samples.
struct MixedRowsTest : testing::Test {
  const MixedRows& rows(const std::string& batch, const std::string& second = "") {
    view = parse_mixture({data(6, 0), data(4, 100)}, R"({"mix": {
        "one": {"view": {"window": {"time": 1}, "order": {"shuffle": "global", "seed": 4}}},
        "two": {"view": {"window": {"time": 1})" + second +
                                                         R"(}}}, "batch": )" + batch + "}");
    return *view->mixture();
  }
  std::shared_ptr<const View> view;
};

/// The samples of a component that a batch has, sorted.
List samples_of(const MixedRows& rows, std::size_t component, std::int64_t epoch,
                std::int64_t batch) {
  List numbers;
  for (const auto& each : rows.samples_of(epoch, batch, {0, rows.row_count(batch)}))
    if (each.component == component) numbers.push_back(each.number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// The samples of a view at these positions of its own order, which continues in the next epoch.
List own_samples(const MixedRows& rows, std::size_t component, std::int64_t first,
                 std::int64_t count) {
  const WindowRows& own = *rows.components()[component]->windows();
  List numbers;
  for (std::int64_t i = first; i < first + count; ++i)
    numbers.push_back(own.sample_at(i % own.samples(), i / own.samples()));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

TEST_F(MixedRowsTest, NumbersContinueFromOneViewToTheNext) {
  const MixedRows& mixed = rows("4");
  EXPECT_EQ(mixed.samples(), 10);
  EXPECT_EQ(mixed.number({0, 5}), 5);
  EXPECT_EQ(mixed.number({1, 2}), 8);
  Dims start(1);
  mixed.starts_of(5, start.begin());
  EXPECT_EQ(start, Dims{5});
  mixed.starts_of(8, start.begin());
  EXPECT_EQ(start, Dims{6 + 2});  // labels of the second view are behind those of the first
  EXPECT_EQ(mixed.first_parts(1).sample, 6);
  EXPECT_EQ(mixed.first_parts(1).variable, 2u);
  for (const std::uint32_t variable : {0, 1, 2, 3})
    EXPECT_EQ(mixed.component_of_variable(variable), variable / 2);
}

TEST_F(MixedRowsTest, ABlockHasTheNextSamplesOfEachView) {
  for (const char* batch :
       {R"({"size": 5, "block": 5})", R"({"size": 5, "mixing": "stratified"})"}) {
    const MixedRows& mixed = rows(batch);
    for (const std::int64_t epoch : {0, 1, 5})
      for (const std::int64_t b : {0, 1}) {
        EXPECT_EQ(samples_of(mixed, 0, epoch, b), own_samples(mixed, 0, 6 * epoch + 3 * b, 3));
        EXPECT_EQ(samples_of(mixed, 1, epoch, b), own_samples(mixed, 1, 4 * epoch + 2 * b, 2));
      }
  }
  // A block of three batches: two of the first view, which thus reaches its second epoch.
  const MixedRows& mixed = rows(R"({"size": 4, "mixing": "batch"})");
  List of_one, of_two;
  for (std::int64_t b = 0; b < 3; ++b) {
    const List one = samples_of(mixed, 0, 0, b), two = samples_of(mixed, 1, 0, b);
    EXPECT_TRUE(one.empty() || two.empty());
    of_one.insert(of_one.end(), one.begin(), one.end());
    of_two.insert(of_two.end(), two.begin(), two.end());
  }
  std::sort(of_one.begin(), of_one.end());
  EXPECT_EQ(of_one, own_samples(mixed, 0, 0, 8));
  EXPECT_EQ(of_two, own_samples(mixed, 1, 0, 4));
}

TEST_F(MixedRowsTest, SomeRowsAreThoseOfTheWholeBatch) {
  for (const char* batch : {"7", R"({"size": 4, "mixing": "batch"})"}) {
    const MixedRows& mixed = rows(batch);
    const List whole = mixed.samples_in(2, 1, {0, mixed.row_count(1)});
    const List some = mixed.samples_in(2, 1, {1, 2});
    EXPECT_EQ(some, List(whole.begin() + 1, whole.begin() + 3)) << batch;
    const std::vector<Dims> starts = mixed.starts_in(2, 1, {1, 2});
    EXPECT_THAT(starts, ElementsAre(Dims{some[0]}, Dims{some[1]})) << batch;
  }
}

TEST_F(MixedRowsTest, TheRemainderIsOfTheMixture) {
  const auto counts = [](const MixedRows& mixed) {
    return List{mixed.epoch_samples(), mixed.batches(), mixed.row_count(mixed.batches() - 1)};
  };
  EXPECT_THAT(counts(rows("4")), ElementsAre(10, 3, 2));
  EXPECT_THAT(counts(rows(R"({"size": 4, "remainder": "drop"})")), ElementsAre(10, 2, 4));
  EXPECT_THAT(counts(rows(R"({"size": 4, "remainder": "pad"})")), ElementsAre(10, 3, 4));
  EXPECT_THAT(counts(rows(R"({"size": 4, "mixing": "batch"})")), ElementsAre(12, 3, 4));
  const Error none = error_of([&] { rows(R"({"size": 11, "remainder": "drop"})"); });
  EXPECT_EQ(none.code(), ErrorCode::invalid_argument);
  EXPECT_EQ(none.why(),
            "batch.remainder: \"drop\" leaves no batch: an epoch has 10 samples, a batch has 11");
}

TEST_F(MixedRowsTest, SamplesAreKnownWhenThoseOfAllViewsAre) {
  const MixedRows& unknown = rows("4", R"(, "missing": {"nan": "skip"})");
  EXPECT_TRUE(unknown.needs_scan());
  EXPECT_EQ(error_of([&] { unknown.samples_of(0, 0, {0, 1}); }).code(), ErrorCode::internal);
  EXPECT_FALSE(with_samples(*view, nullptr)->mixture()->needs_scan());
}

}  // namespace mixed_rows_test
}  // namespace batchfs
