#include "engine/view/rows/window_rows.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "engine/base/dims.h"
#include "engine/view/row_range.h"
#include "engine/view/spec.h"
#include "engine/view/tensors/tensor_layout.h"
#include "engine/view/view.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace window_rows_test {

using testing::ElementsAre;
using testing::StartsWith;

struct WindowRowsTest : testing::Test {
  const std::shared_ptr<const Dataset> dataset =
      MemoryData().declare("v", "<f4", {"t", "x"}, {10, 3}, {4, 3}).dataset();
  /// A view of the windows, which lives as long as the test.
  const WindowRows& rows(const std::string& keys) {
    views.push_back(parse_view(dataset, "{" + keys + "}"));
    return *views.back()->windows();
  }
  std::vector<std::shared_ptr<const View>> views;
};

/// Batches, and the rows of the first four.
std::vector<std::int64_t> counts(const WindowRows& rows) {
  std::vector<std::int64_t> result{rows.batches()};
  for (std::int64_t batch = 0; batch < 4; ++batch) result.push_back(rows.row_count(batch));
  return result;
}

TEST_F(WindowRowsTest, TheRemainderIsKeptOrDroppedOrPadded) {
  const auto of = [&](const std::string& remainder, const std::string& more = "") -> auto& {
    return rows(R"("window": {"t": 1}, "batch": {"size": 4, "remainder": ")" + remainder + "\"}" +
                more);
  };
  EXPECT_THAT(counts(of("keep")), ElementsAre(3, 4, 4, 2, 0));
  EXPECT_THAT(counts(of("pad")), ElementsAre(3, 4, 4, 4, 4));
  EXPECT_EQ(of("drop").batches(), 2);
  EXPECT_EQ(of("drop").row_count(1), 4);
  const char* const seven = R"(, "epochs": {"samples": 7})";
  EXPECT_THAT(counts(of("keep", seven)), ElementsAre(2, 4, 3, 0, 0));
  EXPECT_EQ(of("drop", seven).batches(), 1);
  EXPECT_EQ(of("pad", seven).batches(), 2);
  // Epochs follow each other in the samples; what pads a batch is of the same epoch.
  EXPECT_THAT(of("pad", seven).samples_in(0, 1, {0, 4}), ElementsAre(4, 5, 6, 0));
  EXPECT_THAT(of("pad", seven).samples_in(1, 1, {0, 4}), ElementsAre(1, 2, 3, 7));
}

TEST_F(WindowRowsTest, SomeRowsOfABatch) {
  const WindowRows& all = rows(R"("window": {"x": 1, "t": {"size": 4, "stride": 3}}, "batch": 5)");
  EXPECT_EQ(all.samples(), 9);
  EXPECT_THAT(all.samples_in(0, 1, {1, 2}), ElementsAre(6, 7));
  EXPECT_THAT(all.starts_in(0, 1, {1, 2}), ElementsAre(Dims{2, 0}, Dims{2, 3}));
  EXPECT_TRUE(all.samples_in(0, 1, {1, 0}).empty());
  EXPECT_EQ(all.sample_count(1), 4);
  EXPECT_EQ(all.held_memory(), 0u);
}

TEST_F(WindowRowsTest, BatchesOfPartialWindowsAlone) {
  const WindowRows& two = rows(R"("window": {"t": {"size": 4, "edge": "partial"}}, "batch": 2)");
  EXPECT_EQ(two.samples(), 3);
  EXPECT_EQ(two.partial_sizes(0), std::nullopt);
  EXPECT_EQ(two.partial_sizes(1), Dims{2});
  EXPECT_EQ(two.partial_sizes(2), std::nullopt);  // has no rows
  const std::vector<TensorLayout> layouts = two.layouts_of({2});
  ASSERT_EQ(layouts.size(), 1u);
  EXPECT_EQ(layouts[0].spec.shape, (Dims{2, 2, 3}));
  EXPECT_EQ(layouts[0].sample_bytes, 2 * 3 * 4);
  // One window that is whole makes all of a batch as long.
  EXPECT_EQ(rows(R"("window": {"t": {"size": 4, "edge": "partial"}}, "batch": 3)").partial_sizes(0),
            std::nullopt);
  EXPECT_EQ(rows(R"("window": {"t": {"size": 4, "edge": "pad"}}, "batch": 2)").partial_sizes(1),
            std::nullopt);
  // An offset before the window has values where the window has none.
  const WindowRows& before = rows(R"("window": {"t": {"size": 4, "edge": "partial"}},
      "batch": 1, "tensors": {"y": {"variables": ["v"], "offsets": {"t": [-1]}}})");
  EXPECT_EQ(before.partial_sizes(before.batches() - 1), Dims{3});
}

TEST_F(WindowRowsTest, SamplesOfAViewThatSkipsAreKnownWhenItWasScanned) {
  const WindowRows& unknown = rows(R"("window": {"t": 1}, "missing": {"nan": "skip"})");
  EXPECT_TRUE(unknown.needs_scan());
  EXPECT_EQ(error_of([&] { unknown.samples_in(0, 0, {0, 1}); }).code(), ErrorCode::internal);
  const auto known = with_samples(*views[0], nullptr);
  EXPECT_FALSE(known->windows()->needs_scan());
  EXPECT_THAT(known->windows()->samples_in(0, 0, {0, 1}), ElementsAre(0));
}

TEST_F(WindowRowsTest, ThereIsABatch) {
  const WindowRows& ten = rows(R"("window": {"t": 1})");
  auto spec = std::make_shared<ViewSpec>(views[0]->spec());
  spec->remainder = ViewSpec::Remainder::drop;
  const auto order = std::make_shared<const SampleOrder>(ten.values(), *spec);
  spec->batch_size = 10;
  EXPECT_EQ(WindowRows(spec, ten.values(), order).batches(), 1);
  spec->batch_size = 11;
  const Error error = error_of([&] { WindowRows(spec, ten.values(), order); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.why(), StartsWith("batch.remainder: \"drop\" leaves no batch: "));
  spec->remainder = ViewSpec::Remainder::pad;
  EXPECT_EQ(WindowRows(spec, ten.values(), order).row_count(0), 11);
}

}  // namespace window_rows_test
}  // namespace batchfs
