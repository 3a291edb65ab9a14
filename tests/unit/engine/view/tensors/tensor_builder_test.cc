#include "engine/view/tensors/tensor_builder.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "engine/base/dims.h"
#include "engine/dataset/dataset.h"
#include "engine/view/axes.h"
#include "engine/view/batch_plan.h"
#include "engine/view/geometry.h"
#include "engine/view/spec.h"
#include "engine/view/tensors/tensor_set.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace tensor_builder_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

/// A builder for the windows and tensors of a view, which are added in their order.
struct Built {
  explicit Built(const std::string& json)
      : spec(parse_view_spec(json, "v", "f")), axes(*dataset, spec.select) {
    for (const WindowSpec& window : spec.window)
      axes.windows.push_back(
          {window.dim, window.size, window.wrap, window.edge != WindowSpec::Edge::drop});
    for (const TensorDefinition& tensor : spec.tensors) builder.add_tensor(tensor);
  }

  const std::shared_ptr<const Dataset> dataset =
      MemoryData()
          .declare("f", "<f4", {"t", "y", "x"}, {8, 3, 4}, {3, 3, 4})
          .declare("i", "<i2", {"t"}, {8}, {8})
          .declare("cov", "<f4", {"t", "x", "x"}, {8, 4, 4}, {8, 4, 4})
          .declare("s", "|S3", {"t"}, {8}, {8})
          .index<std::int64_t>("t", "<M8[D]", {0, 1, 2, 3, 4, 5, 6, 7})
          .dataset();
  ViewSpec spec;
  ViewAxes axes;
  TensorBuilder builder{*dataset, spec, axes};
  const TensorSet& set = builder.set();
};

Error refusal(const std::string& json) {
  return error_of([&] { Built{json}; });
}

std::string windows_of_t(const std::string& tensors, const std::string& more = "") {
  return R"({"window": {"t": 2}, "tensors": )" + tensors + more + "}";
}

TEST(TensorBuilder, EntersAVariableOnce) {
  Built built(R"({"window": {"t": 2}, "select": {"x": ["#3", "#1"]}})");
  EXPECT_EQ(built.builder.use_variable("i", "v"), 0u);
  EXPECT_EQ(built.builder.use_variable("f", "v"), 1u);
  EXPECT_EQ(built.builder.use_variable("i", "v"), 0u);
  EXPECT_THAT(built.set.variables, ElementsAre(built.dataset->find("i"), built.dataset->find("f")));
  EXPECT_EQ(built.set.stored[0][0].size(), 8);
  EXPECT_EQ(built.set.stored[1][2][0], 3);
}

TEST(TensorBuilder, VariablesThatATensorCannotHaveAreRefused) {
  Built built(R"({"window": {"x": 2}})");
  const auto use = [&](const std::string& name) {
    return error_of([&] { built.builder.use_variable(name, "variables[3]"); });
  };
  EXPECT_EQ(use("ff").code(), ErrorCode::not_found);
  EXPECT_THAT(use("ff").why(), StartsWith("variables[3]: no variable 'ff', did you mean 'f'?"));
  EXPECT_EQ(use("s").code(), ErrorCode::not_supported);
  EXPECT_EQ(use("s").why(), "variables[3]: 's' is of type |S3, which no tensor can hold");
  EXPECT_EQ(use("cov").code(), ErrorCode::not_supported);
  EXPECT_THAT(use("cov").why(), StartsWith("variables[3]: 'cov' has the dimension 'x' twice"));
  EXPECT_TRUE(built.set.variables.empty());
  Built both(R"({"window": {"x": 2, "x:2": 2}})");
  EXPECT_EQ(both.builder.use_variable("cov", "v"), 0u);
}

TEST(TensorBuilder, RowsOfTensorsAndOperandsOfCombinations) {
  Built built(windows_of_t(
      R"({"a": {"variables": ["f"], "coarsen": {"x": 2}},
      "b": {"variables": ["i", {"make": "constant", "value": 2}], "stack": "c"},
      "w": {"variables": ["f"]}})",
      R"(, "normalize": {"method": "zscore", "statistics": {"i": {"mean": 1, "std": 2}},
      "variables": ["i"]}, "dtype": "float32", "batch": 5)"));
  EXPECT_THAT(built.set.row_bytes, ElementsAre(2 * 3 * 2 * 4, 2 * 2 * 4, 2 * 3 * 4 * 4));
  built.builder.add_combinations();
  const TensorSet set = built.builder.take();
  // The operands of "a", which are not coarse, in float64.
  EXPECT_THAT(set.row_bytes, ElementsAre(2 * 3 * 2 * 4, 2 * 2 * 4, 2 * 3 * 4 * 4, 2 * 3 * 4 * 8));
  EXPECT_THAT(set.row_shapes, ElementsAre(Dims{1, 2, 3, 2}, Dims{1, 2, 2}, Dims{1, 2, 3, 4}));
  EXPECT_EQ(set.specs[0].shape, (Dims{5, 2, 3, 2}));
  ASSERT_EQ(set.combinations.size(), 1u);
  EXPECT_EQ(set.combinations[0]->into(), 0u);
  std::vector<std::uint32_t> scanned;  // tensors of stored variables, and what "a" is made of
  for (const VariablePlacement& placement : set.scanned) scanned.push_back(placement.tensor);
  EXPECT_THAT(scanned, ElementsAre(1, 2, 0));
  ASSERT_EQ(set.channels[1].size(), 2u);
  EXPECT_FALSE(set.channels[1][0].made);
  EXPECT_TRUE(set.channels[1][1].made);
  EXPECT_EQ(set.channels[2][0].number, set.channels[0][0].number);
  ASSERT_EQ(set.normalizations.size(), 1u);
  EXPECT_EQ(set.normalizations.at(set.channels[1][0].number)->divide, std::vector<double>{2});
}

TEST(TensorBuilder, TypesAreDecodedOrCastWhenTheyAreFloats) {
  const auto types = [](const std::string& more) {
    Built built(R"({"window": {"t": 2})" + more + "}");
    std::vector<std::string> names;
    for (const char* name : {"f", "i", "t"})
      names.push_back(built.builder.result_type(built.dataset->variable(name)).name());
    return names;
  };
  EXPECT_THAT(types(""), ElementsAre("float32", "int16", "datetime64[D]"));
  EXPECT_THAT(types(R"(, "dtype": "float16")"), ElementsAre("float16", "int16", "datetime64[D]"));
  EXPECT_THAT(
      types(R"(, "normalize": {"method": "zscore", "statistics": {"i": {"mean": 1, "std": 2}},
                         "variables": ["i"]})"),
      ElementsAre("float32", "float64", "datetime64[D]"));
  const Error error = refusal(windows_of_t(R"({"a": {"variables": ["f", "i"], "stack": "c"}})"));
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error.why(),
            "tensors.a: 'f' is float32 and 'i' is int16; give the view a \"dtype\" to "
            "stack them");
}

TEST(TensorBuilder, PaddingIsOfTheTypeOfTheTensor) {
  const auto padded = [](const std::string& variable, const std::string& value) {
    return Built(R"({"window": {"t": {"size": 3, "edge": "pad")" + value +
                 R"(}}, "tensors": {"a": {"variables": [")" + variable + R"("]}}})")
        .set.specs[0];
  };
  const auto read = [](const TensorSpec& tensor, auto value) {
    EXPECT_TRUE(tensor.padded);
    std::memcpy(&value, tensor.pad.data(), sizeof value);
    return value;
  };
  EXPECT_TRUE(std::isnan(read(padded("f", ""), 0.0F)));
  EXPECT_EQ(read(padded("f", R"(, "pad_value": 1.5)"), 0.0F), 1.5F);
  EXPECT_EQ(read(padded("i", ""), std::int16_t{1}), 0);
  EXPECT_EQ(read(padded("i", R"(, "pad_value": -32768)"), std::int16_t{0}), -32768);
  EXPECT_EQ(read(padded("t", R"(, "pad_value": 4)"), std::int64_t{0}), INT64_MIN);  // NaT
  for (const char* value : {R"(, "pad_value": 1.5)", R"(, "pad_value": 32768)"}) {
    const Error error = error_of([&] { padded("i", value); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.why(), HasSubstr("cannot be held by int16"));
  }
  EXPECT_FALSE(Built(windows_of_t(R"({"a": {"variables": ["f"]}})")).set.specs[0].padded);
}

TEST(TensorBuilder, ValuesAndPatchesAreTensorsToo) {
  Built built(windows_of_t(R"({"a": {"variables": ["i"]}})"));
  TensorSpec label;
  label.name = "kind";
  label.type = float32();
  built.builder.add_values(label);
  EXPECT_EQ(error_of([&] { built.builder.add_values(label); }).code(), ErrorCode::invalid_argument);
  TensorSpec patches;
  patches.name = "p";
  patches.type = float32();
  patches.shape = {6, 2};
  VariablePlacement placement;
  placement.tensor = 2;
  placement.variable = built.builder.use_variable("f", "v");
  built.builder.add_patches(patches, placement, {3, 2}, 24);
  EXPECT_THAT(built.set.row_bytes, ElementsAre(2 * 2, 4, 24));
  EXPECT_THAT(built.set.row_shapes, ElementsAre(Dims{1, 2}, Dims{1}, Dims{3, 2}));
  EXPECT_EQ(built.set.specs[2].shape, (Dims{6, 2}));
  EXPECT_EQ(built.set.converter(2, 1).result(), float32());
  EXPECT_EQ(built.set.placements.back().variable, 1u);
}

TEST(TensorBuilder, NamesAreThoseOfTheViewAndOfItsFormats) {
  Built built(windows_of_t(
      R"({"a": {"variables": ["i"]}})",
      R"(, "normalize": {"method": "zscore", "statistics": {"f": {"mean": 1, "std": 2}},
                                "variables": ["f"]}, "formats": ["zarr"])"));
  const Error normalized = error_of([&] { built.builder.check_normalized_names(); });
  EXPECT_EQ(normalized.code(), ErrorCode::not_found);
  EXPECT_THAT(normalized.why(), StartsWith("normalize.variables: the view has no variable 'f'"));
  built.builder.use_variable("f", "v");
  built.builder.check_normalized_names();
  check_tensor_name(built.spec, "__metadata__", "p");
  for (const char* name : {"a/b", ".zarray", "zarr.json"})
    EXPECT_THAT(error_of([&] { check_tensor_name(built.spec, name, "p"); }).why(),
                StartsWith("p: '" + std::string(name) + "' cannot be a tensor's name: "));
  EXPECT_THAT(default_variables(*built.dataset, built.spec, {"t"}), ElementsAre("cov", "f", "i"));
  EXPECT_THAT(default_variables(*built.dataset, built.spec, {"y", "x"}), ElementsAre("f"));
  EXPECT_EQ(error_of([&] { default_variables(*built.dataset, built.spec, {"z"}); }).code(),
            ErrorCode::not_found);
}

}  // namespace tensor_builder_test
}  // namespace batchfs
