#include "engine/view/view.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace view_test {

TEST(View, NoVariableWithTheDimensionsSaysWhichThereAre) {
  const Error error = error_of([&] {
    MemoryData data;
    data.declare("a", "<f4", {"x"}, {2}, {2}).declare("b", "<f4", {"y"}, {2}, {2});
    parse_view(data.dataset(), R"({"window": {"x": 1, "y": 1}})");
  });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_EQ(error.why(), "no variable has the dimensions x, y; there are a, b");
  EXPECT_EQ(error.where(), "file.json");
}

TEST(View, IsThereForEveryFormOfTheFile) {
  MemoryData data;
  data.declare("q", "<f4", {"time", "lat"}, {100, 721}, {1, 721});
  const auto dataset = data.dataset();
  EXPECT_EQ(parse_view(dataset, R"({"variables": ["q"], "window": {"time": 10}})")->samples(), 10);
  EXPECT_EQ(parse_view(dataset, R"({"variables": ["q"], "xbatcher": {"input_dims": {"time": 10}}})")
                ->samples(),
            10);
  EXPECT_EQ(parse_view(dataset, R"({"variables": ["q"], "window": {"time": 10}})")->name(),
            "given");
}

TEST(View, DoesNotReadItsVariables) {
  // The chunks of `t` would be 74 PB.
  MemoryData data;
  data.declare("t", "<f4", {"time", "cell"}, {INT64_C(1) << 40, 1 << 14}, {1, 1 << 14});
  const auto view = parse_view(
      data.dataset(), R"({"window": {"time": 1}, "batch": 2, "order": {"shuffle": "global"}})");
  EXPECT_EQ(view->samples(), INT64_C(1) << 40);
  assembled(*view, 0, view->batches() / 2);
}

}  // namespace view_test
}  // namespace batchfs
