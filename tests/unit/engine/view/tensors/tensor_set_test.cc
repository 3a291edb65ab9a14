#include "engine/view/tensors/tensor_set.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "engine/base/dims.h"
#include "engine/dataset/dataset.h"
#include "engine/view/tensors/tensor_layout.h"
#include "engine/view/view.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace tensor_set_test {

using testing::ElementsAre;

struct TensorSetTest : testing::Test {
  const std::shared_ptr<const Dataset> dataset =
      MemoryData()
          .declare("a", "<i4", {"time", "lat", "lon"}, {5, 3, 4}, {2, 2, 4})
          .index<std::int32_t>("time", "<i4", {0, 6, 12, 18, 24},
                               {{"units", "hours since 2000-01-01"}})
          .dataset();
  std::shared_ptr<const View> view(const std::string& json) const {
    return parse_view(dataset, json);
  }
};

TEST_F(TensorSetTest, ARowIsAWindow) {
  const auto of = view(R"({"variables": ["a", "time"], "window": {"time": 2}, "batch": 9})");
  const TensorSet& set = of->tensor_set();
  EXPECT_THAT(set.row_bytes, ElementsAre(2 * 3 * 4 * 4, 2 * 8));
  EXPECT_THAT(set.shapes(1), ElementsAre(Dims{1, 2, 3, 4}, Dims{1, 2}));
  EXPECT_THAT(set.shapes(7), ElementsAre(Dims{7, 2, 3, 4}, Dims{7, 2}));
  EXPECT_THAT(set.shapes(0), ElementsAre(Dims{0, 2, 3, 4}, Dims{0, 2}));
}

TEST_F(TensorSetTest, ARowIsAPatch) {
  // xarray stacks the longitudes of each of the patches along time.
  const auto concatenated = view(R"({"variables": ["a"], "xbatcher": {"input_dims":
      {"time": 2, "lat": 3}, "batch_dims": {"time": 2}, "concat_input_dims": true}})");
  EXPECT_THAT(concatenated->tensor_set().shapes(1), ElementsAre(Dims{4, 2, 3}));
  EXPECT_THAT(concatenated->tensor_set().shapes(3), ElementsAre(Dims{12, 2, 3}));
  const auto single = view(R"({"variables": ["a"], "xbatcher": {"input_dims": {"lat": 2}},
                               "select": {"lon": "#0"}})");
  EXPECT_THAT(single->tensor_set().shapes(1), ElementsAre(Dims{5, 2}));
  TensorSet scalars;
  scalars.row_shapes = {Dims{}};  // has no first dimension
  EXPECT_THAT(scalars.shapes(1), ElementsAre(Dims{}));
}

TEST_F(TensorSetTest, CopiesShareWhatTheyOwn) {
  const auto of = view(R"({"variables": ["a", "time"], "window": {"time": 1}})");
  const TensorSet& set = of->tensor_set();
  auto first = std::make_unique<TensorSet>(set);
  const TensorSet second = *first;
  first.reset();
  EXPECT_EQ(second.variables, set.variables);
  EXPECT_EQ(&second.converter(1, 1), &set.converter(1, 1));
  // Times of one decoding are not those of the dataset.
  ASSERT_EQ(second.settled.size(), 1u);
  EXPECT_EQ(second.variables[1], second.settled[0].get());
  EXPECT_EQ(second.settled[0], set.settled[0]);
  EXPECT_EQ(second.variables[0], dataset->find("a"));
}

TEST_F(TensorSetTest, AConcatenatedVariableIsWholeAtItsFirstNumber) {
  const Variable first = dataset->variable("a"), second = first, other = first;
  const auto whole = std::make_shared<const Variable>(first);
  TensorSet set;
  set.variables = {&other, &first, &second};
  set.whole.emplace(1, whole);
  EXPECT_EQ(&set.whole_variable(0), &other);
  EXPECT_EQ(&set.whole_variable(1), whole.get());
  EXPECT_EQ(&set.whole_variable(2), &second);
}

TEST_F(TensorSetTest, SourcesReferToTheSetAndItsAxes) {
  const auto of = view(R"({"window": {"time": 2}, "batch": 3, "tensors": {
      "x": {"variables": ["time"]}, "y": {"variables": ["a"]}}})");
  const TensorSource source = of->tensor_set().source(1, of->axes(), 7);
  EXPECT_EQ(source.number, 1u);
  EXPECT_EQ(&source.definition, &of->tensor_set().definitions[1]);
  EXPECT_EQ(source.type.name(), "int32");
  ASSERT_EQ(source.variables.size(), 1u);
  EXPECT_EQ(source.variables[0].variable, dataset->find("a"));
  EXPECT_EQ(&source.windows, &of->axes().windows);
  EXPECT_EQ(&source.selected, &of->axes().selected);
  EXPECT_EQ(lay_out(source, {1}).spec.shape, (Dims{7, 1, 3, 4}));
}

}  // namespace tensor_set_test
}  // namespace batchfs
