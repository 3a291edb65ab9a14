#include "engine/view/tensors/tensor_layout.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace tensor_layout_test {

using testing::ElementsAre;
using testing::StartsWith;

/// A dataset of a(time, lat, lon), b(time, level, lat, lon) and m(lat, lon), whole, under windows
/// along some dimensions.
struct Tensors {
  explicit Tensors(std::vector<WindowDim> window_dims) : windows(std::move(window_dims)) {
    data.declare("a", "<i4", {"time", "lat", "lon"}, {5, 3, 4}, {2, 2, 4})
        .declare("b", "<i4", {"time", "level", "lat", "lon"}, {5, 2, 3, 4}, {1, 2, 3, 3})
        .declare("m", "<i4", {"lat", "lon"}, {3, 4}, {3, 4})
        .index<std::int32_t>("level", "<i4", {500, 850});
    dataset = data.dataset();
    for (const auto& [dim, size] : dataset->dims())
      selected.emplace(dim, Positions::range(0, size));
    for (const WindowDim& window : windows) sizes.push_back(window.size);
  }

  TensorSource source(const TensorDefinition& definition) const {
    TensorSource source{7, definition, data_type, {}, selected, windows, 10, joined};
    for (const std::string& name : definition.variables)
      source.variables.emplace_back(static_cast<std::uint32_t>(20 + source.variables.size()),
                                    &dataset->variable(name));
    return source;
  }
  TensorLayout layout(const TensorDefinition& definition) const {
    return lay_out(source(definition), sizes);
  }
  std::vector<std::string> channels(const TensorDefinition& definition) const {
    return channel_names(source(definition), layout(definition), sizes, *dataset);
  }
  std::string refusal(const TensorDefinition& definition) const {
    const Error error = error_of([&] { layout(definition); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.why();
  }

  MemoryData data;
  std::shared_ptr<const Dataset> dataset;
  std::map<std::string, Positions> selected;
  mutable JoinedAxes joined{selected};
  std::vector<WindowDim> windows;
  Dims sizes;
  DataType data_type = float32();
};

TensorDefinition definition(std::vector<std::string> variables,
                            std::optional<std::string> stack = {},
                            std::optional<std::vector<std::string>> dims = {}) {
  return {.name = "x",
          .variables = std::move(variables),
          .stack = std::move(stack),
          .dims = std::move(dims),
          .path = "tensors.x"};
}

/// Bytes from one position to the next, for each of a variable's dimensions.
std::vector<std::int64_t> strides(const VariablePlacement& placement) {
  std::vector<std::int64_t> result;
  for (const AxisPlacement& axis : placement.axes) result.push_back(axis.stride);
  return result;
}

TEST(TensorLayout, OfOneVariableIsItsOwn) {
  const TensorLayout layout = Tensors({{"time", 2, false}}).layout(definition({"b"}));
  EXPECT_THAT(layout.spec.dims, ElementsAre("sample", "time", "level", "lat", "lon"));
  EXPECT_EQ(layout.spec.shape, (Dims{10, 2, 2, 3, 4}));
  EXPECT_EQ(layout.spec.type, float32());
  EXPECT_EQ(layout.spec.stack_axis, -1);
  EXPECT_EQ(layout.sample_bytes, 2 * 2 * 3 * 4 * 4);
  ASSERT_EQ(layout.placements.size(), 1u);
  EXPECT_EQ(layout.placements[0].tensor, 7u);
  EXPECT_EQ(layout.placements[0].variable, 20u);
  EXPECT_EQ(layout.placements[0].base, 0);
  EXPECT_THAT(strides(layout.placements[0]), ElementsAre(96, 48, 16, 4));
  EXPECT_EQ(layout.placements[0].axes[0].window, 0);
  EXPECT_EQ(layout.placements[0].axes[0].size, 2);
  EXPECT_EQ(layout.placements[0].axes[1].window, -1);
}

TEST(TensorLayout, InAnotherOrder) {
  const TensorLayout layout =
      Tensors({{"time", 1, false}}).layout(definition({"a"}, {}, {{"lon", "time", "lat"}}));
  EXPECT_EQ(layout.spec.shape, (Dims{10, 4, 1, 3}));
  EXPECT_THAT(strides(layout.placements[0]), ElementsAre(12, 4, 12));  // of time, lat, lon
}

TEST(TensorLayout, OffsetsLengthenAndDroppedDimensionsGo) {
  Tensors tensors({{"time", 2, true}});
  tensors.selected.insert_or_assign("lat", Positions::one(1));
  TensorDefinition x = definition({"a"});
  x.offsets = {{"time", {-1, 0, 3}}};
  const TensorLayout layout = tensors.layout(x);
  EXPECT_THAT(layout.spec.dims, ElementsAre("sample", "time", "lon"));
  EXPECT_EQ(layout.spec.shape, (Dims{10, 6, 4}));
  EXPECT_THAT(strides(layout.placements[0]), ElementsAre(16, 0, 4));
  EXPECT_THAT(layout.placements[0].axes[0].offsets, ElementsAre(-1, 0, 3));
  EXPECT_TRUE(layout.placements[0].axes[0].wrap);
}

TEST(TensorLayout, PartialWindowsMakeASmallerTensor) {
  const Tensors tensors({{"time", 2, false}, {"lat", 3, false}});
  const TensorDefinition x = definition({"a"});
  const TensorLayout layout = lay_out(tensors.source(x), {1, 2});
  EXPECT_EQ(layout.spec.shape, (Dims{10, 1, 2, 4}));
  EXPECT_EQ(layout.sample_bytes, 32);
  EXPECT_EQ(layout.placements[0].axes[1].size, 2);
}

TEST(TensorLayout, AStackJoinsWhatDimsDoesNotName) {
  const TensorLayout layout =
      Tensors({{"time", 1, false}})
          .layout(definition({"b", "a"}, "channel", {{"lat", "channel", "lon"}}));
  // b has time and level for its channels, a only time.
  EXPECT_THAT(layout.joined, ElementsAre(ElementsAre("time", "level"), ElementsAre("time")));
  EXPECT_EQ(layout.spec.shape, (Dims{10, 3, 3, 4}));
  EXPECT_EQ(layout.spec.stack_axis, 2);
  ASSERT_EQ(layout.placements.size(), 2u);
  EXPECT_EQ(layout.placements[0].base, 0);
  EXPECT_THAT(strides(layout.placements[0]), ElementsAre(32, 16, 48, 4));  // time, level, lat, lon
  EXPECT_EQ(layout.placements[1].base, 2 * 16);                            // after b's two channels
  EXPECT_EQ(layout.placements[1].variable, 21u);
  EXPECT_THAT(strides(layout.placements[1]), ElementsAre(16, 48, 4));
}

TEST(TensorLayout, WithoutDimsAStackJoinsTheDimsThatNotAllHaveAndComesFirst) {
  const TensorLayout layout = Tensors({{"time", 2, false}}).layout(definition({"a", "b"}, "c"));
  EXPECT_THAT(layout.spec.dims, ElementsAre("sample", "c", "time", "lat", "lon"));
  EXPECT_EQ(layout.spec.shape, (Dims{10, 1 + 2, 2, 3, 4}));
  EXPECT_EQ(layout.spec.stack_axis, 1);
  EXPECT_THAT(layout.joined, ElementsAre(ElementsAre(), ElementsAre("level")));
}

TEST(TensorLayout, AStackJoinsInTheOrderOfTheFirstVariableThenWhatOnlyTheOtherHas) {
  const TensorLayout layout =
      Tensors({{"time", 2, false}}).layout(definition({"a", "b"}, "c", {{"c", "time"}}));
  EXPECT_EQ(layout.spec.shape, (Dims{10, 12 + 24, 2}));
  EXPECT_THAT(layout.joined,
              ElementsAre(ElementsAre("lat", "lon"), ElementsAre("lat", "lon", "level")));
}

TEST(TensorLayout, BroadcastRepeatsAVariableAlongWhatItLacks) {
  const Tensors tensors({{"time", 2, false}});
  TensorDefinition x = definition({"m", "a", "b"}, "c");
  x.broadcast = true;
  x.offsets = {{"time", {0, 2}}};
  const TensorLayout layout = tensors.layout(x);
  // Like without broadcast, levels join the stack; the window's dimension does not.
  EXPECT_THAT(layout.spec.dims, ElementsAre("sample", "c", "lat", "lon", "time"));
  EXPECT_EQ(layout.spec.shape, (Dims{10, 1 + 1 + 2, 3, 4, 4}));
  EXPECT_THAT(tensors.channels(x), ElementsAre("m", "a", "b_500", "b_850"));
  ASSERT_EQ(layout.placements.size(), 3u);
  EXPECT_THAT(strides(layout.placements[0]), ElementsAre(64, 16));
  ASSERT_EQ(layout.placements[0].repeated.size(), 1u);
  const AxisPlacement& time = layout.placements[0].repeated[0];
  EXPECT_EQ(time.window, 0);
  EXPECT_EQ(time.stride, 4);
  EXPECT_EQ(time.extent(), 4);
  EXPECT_TRUE(layout.placements[1].repeated.empty());
}

TEST(TensorLayout, BroadcastTakesAnyDimensionOfItsVariablesAndWindows) {
  const Tensors tensors({{"time", 2, false}});
  TensorDefinition x = definition({"m"}, {}, {{"lat", "time", "lon"}});
  x.broadcast = true;
  EXPECT_EQ(tensors.layout(x).spec.shape, (Dims{10, 3, 2, 4}));
  TensorDefinition levels = definition({"m", "b"}, "c", {{"c", "level"}});
  levels.broadcast = true;
  EXPECT_EQ(tensors.layout(levels).spec.shape, (Dims{10, 12 + 24, 2}));
  EXPECT_EQ(tensors.layout(levels).placements[0].repeated.size(), 1u);
  x.dims = {{"lat", "lon", "level"}};
  EXPECT_EQ(tensors.refusal(x),
            "tensors.x: dims: 'level' is a dimension neither of its variables nor of \"window\"");
  x.dims = {{"lat", "time"}};
  EXPECT_EQ(tensors.refusal(x), "tensors.x: dims: name every dimension of 'm': lat, lon");
  TensorDefinition clash = definition({"m", "a"}, "time");
  clash.broadcast = true;
  EXPECT_EQ(tensors.refusal(clash), "tensors.x: stack: 'time' is a dimension of the tensor");
}

TEST(TensorLayout, ChannelsAreNamedByLabelsAndSteps) {
  const Tensors tensors({{"time", 2, false}});
  EXPECT_THAT(tensors.channels(definition({"m", "b"}, "c", {{"c", "lat", "lon"}})),
              ElementsAre("m", "b_0_500", "b_0_850", "b_1_500", "b_1_850"));
  TensorDefinition later = definition({"a"}, "c", {{"c", "lat", "lon"}});
  later.offsets = {{"time", {0, 3}}};
  EXPECT_THAT(tensors.channels(later), ElementsAre("a_0", "a_1", "a_3", "a_4"));
  Tensors half({{"time", 1, false}});
  half.selected.insert_or_assign("lat", Positions::range(1, 2));
  EXPECT_THAT(half.channels(definition({"a"}, "c", {{"time", "c", "lon"}})),
              ElementsAre("a_1", "a_2"));  // no labels
  EXPECT_THAT(tensors.channels(definition({"a"})), ElementsAre());
}

TEST(TensorLayout, TooManyChannelsAreNotNamed) {
  Tensors tensors({{"time", 1 << 14, false}});
  EXPECT_EQ(tensors.channels(definition({"a"}, "c", {{"c", "lat", "lon"}})).size(), 1u << 14);
  tensors.sizes = {(1 << 16) + 1};
  EXPECT_THAT(tensors.channels(definition({"a"}, "c", {{"c", "lat", "lon"}})), ElementsAre());
}

TEST(TensorLayout, WhatDoesNotGoTogetherIsNamedWithItsPath) {
  const Tensors tensors({{"time", 1, false}});
  const struct {
    TensorDefinition definition;
    const char* message;
  } wrong[] = {
      {definition({"a"}, {}, {{"time", "lat", "lo"}}),
       "tensors.x: dims: 'a' has no dimension 'lo', did you mean 'lon'?"},
      {definition({"a"}, {}, {{"time", "lat"}}),
       "tensors.x: dims: name every dimension of 'a': time, lat, lon"},
      {definition({"a"}, {}, {{"sample", "time", "lat", "lon"}}),
       "tensors.x: \"dims\" leaves out \"sample\""},
      {definition({"a", "b"}, "c", {{"time"}}), "tensors.x: dims: the stack 'c' is missing"},
      {definition({"a", "b"}, "time"), "tensors.x: stack: 'time' is a dimension of 'a'"},
      {definition({"a", "m"}, "c"), "tensors.x: 'm' has no dimension 'time', which the tensor has"},
      {definition({"a"}, "sample"), "tensors.x: two of its dimensions would be called 'sample'"},
  };
  for (const auto& w : wrong) EXPECT_THAT(tensors.refusal(w.definition), StartsWith(w.message));
  EXPECT_THAT(Tensors({{"time", 2, false}}).refusal(definition({"m", "a"}, "c")),
              StartsWith("tensors.x: 'm' has no dimension 'time', which 'a' has"));
}

TEST(TensorLayout, ShapesThatCannotBeAddressedAreRefused) {
  Tensors tensors({{"lat", 1, true}, {"lon", 1, true}});
  tensors.sizes = {INT64_C(1) << 40, INT64_C(1) << 40};
  const std::string message = "tensors.x: a batch of this tensor is larger than 2^63 bytes";
  EXPECT_EQ(tensors.refusal(definition({"m"})), message);
  EXPECT_EQ(tensors.refusal(definition({"m"}, "c", {{"c"}})), message);
  // 2^59 elements of four bytes are no more than 2^61 bytes, but ten samples of them are.
  tensors.sizes = {INT64_C(1) << 40, INT64_C(1) << 19};
  EXPECT_EQ(tensors.refusal(definition({"m"})), message);
}

TEST(TensorLayout, AStoredDimensionCalledSampleIsRenamed) {
  EXPECT_EQ(tensor_dim("sample"), "stored_sample");
  EXPECT_EQ(tensor_dim("time"), "time");
}

}  // namespace tensor_layout_test
}  // namespace batchfs
