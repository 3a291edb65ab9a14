#include "engine/dataset/dataset.h"

#include <gmock/gmock.h>

#include "engine/base/limits.h"
#include "engine/dataset/read_variable.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace dataset_test {

using testing::ElementsAre;
using testing::HasSubstr;

using DimList = std::vector<std::pair<std::string, std::int64_t>>;

TEST(Dataset, PutsDataBeforeCoordinatesAndDimensionsInThatOrder) {
  MemoryData data;
  data.index<double>("a_first_by_name", "<f8", {1, 2})
      .declare("t2m", "<f4", {"time", "lat"}, {4, 3}, {1, 3}, {{"coordinates", "height  station"}})
      .declare("height", "<f4", {}, {}, {})
      .declare("station", "<f4", {"lat"}, {3}, {3})
      .declare("mask", "<f4", {"lat", "a_first_by_name"}, {3, 2}, {3, 2})
      .index<double>("time", "<f8", {0, 1, 2, 3});
  const auto dataset = data.dataset();
  std::vector<std::string> names;
  for (const Variable& variable : dataset->variables()) names.push_back(variable.name);
  // Within the groups: by path, as the hierarchy is sorted.
  EXPECT_THAT(names, ElementsAre("mask", "t2m", "a_first_by_name", "height", "station", "time"));
  EXPECT_FALSE(dataset->variable("t2m").is_coordinate);
  EXPECT_TRUE(dataset->variable("height").is_coordinate);
  EXPECT_EQ(dataset->dims(), (DimList{{"lat", 3}, {"a_first_by_name", 2}, {"time", 4}}));
  EXPECT_EQ(dataset->dim_size("time"), 4);
}

TEST(Dataset, HoldsOneGroupOnly) {
  MemoryData data;
  data.hierarchy.groups["a"] = {"a", {{"title", "inner"}}};
  data.declare("v", "<f4", {"x"}, {2}, {2})
      .declare("a/v", "<f4", {"x"}, {5}, {5})
      .declare("a/b/w", "<f4", {"x"}, {7}, {7})
      .declare("ab", "<f4", {"x"}, {2}, {2});
  const Dataset root(data.store, data.hierarchy), inner(data.store, data.hierarchy, "a");
  EXPECT_EQ(root.variables().size(), 2u);
  EXPECT_EQ(root.dim_size("x"), 2);
  ASSERT_EQ(inner.variables().size(), 1u);
  EXPECT_EQ(inner.variables()[0].name, "v");
  EXPECT_EQ(inner.dim_size("x"), 5);
  EXPECT_EQ(inner.attributes(), (Json{{"title", "inner"}}));
}

TEST(Dataset, OfAStoreThatIsAnArray) {
  MemoryData data;
  data.add<float>("", "<f4", {"x"}, {2}, {1, 2});
  const Dataset dataset(data.store, data.hierarchy);
  ASSERT_EQ(dataset.variables().size(), 1u);
  EXPECT_EQ(values_of<float>(read_variable(dataset.variable("values"))),
            (std::vector<float>{1, 2}));
}

TEST(Dataset, ADimensionThatAVariableHasTwiceHasTwoNamesAndOneCoordinate) {
  MemoryData data;
  data.declare("cov", "<f4", {"time", "c", "c"}, {2, 3, 3}, {1, 3, 3})
      .declare("flux", "<f4", {"time", "c"}, {2, 3}, {2, 3})
      .declare("other", "<f4", {"d", "d"}, {3, 4}, {3, 4})
      .index<std::int32_t>("c", "<i4", {10, 20, 30});
  const auto dataset = data.dataset();
  EXPECT_THAT(dataset->variable("cov").dims, ElementsAre("time", "c", "c:2"));
  EXPECT_EQ(dataset->dim_size("c:2"), 3);
  EXPECT_EQ(dataset->original_dim("c:2"), "c");
  EXPECT_EQ(dataset->original_dim("c"), "c");
  EXPECT_TRUE(dataset->repeats_dim(dataset->variable("cov"), "c"));
  EXPECT_FALSE(dataset->repeats_dim(dataset->variable("flux"), "c"));
  EXPECT_EQ(dataset->index_of("c:2"), dataset->find("c"));
  EXPECT_EQ(values_of<std::int32_t>(dataset->index_values("c:2")),
            (std::vector<std::int32_t>{10, 20, 30}));
  // One of another length is another dimension.
  EXPECT_THAT(dataset->variable("other").dims, ElementsAre("d", "d:2"));
  EXPECT_EQ(dataset->original_dim("d:2"), "d:2");
  EXPECT_EQ(dataset->dim_size("d:2"), 4);
}

TEST(Dataset, AStoredNameIsNotTheRepetitionOfAnother) {
  MemoryData data;
  data.declare("cov", "<f4", {"c", "c"}, {3, 3}, {3, 3}).declare("flux", "<f4", {"c:2"}, {3}, {3});
  EXPECT_TRUE(data.dataset()->repeated_dims().empty());
}

TEST(Dataset, NamesTheNearest) {
  const auto dataset = MemoryData().declare("temperature", "<f4", {"time"}, {2}, {2}).dataset();
  const Error variable = error_of([&] { dataset->variable("temprature"); });
  EXPECT_EQ(variable.code(), ErrorCode::not_found);
  EXPECT_THAT(variable.why(), HasSubstr("did you mean 'temperature'?"));
  EXPECT_THAT(error_of([&] { dataset->dim_size("tim"); }).why(), HasSubstr("did you mean 'time'?"));
  EXPECT_THAT(error_of([&] { dataset->dim_size("zzzzzz"); }).why(), HasSubstr("there is time"));
  EXPECT_EQ(dataset->find("zz"), nullptr);
}

TEST(Dataset, LengthsThatContradictAreAnError) {
  const Error error = error_of([] {
    MemoryData()
        .declare("a", "<f4", {"x"}, {2}, {2})
        .declare("b", "<f4", {"x"}, {3}, {3})
        .dataset();
  });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.why(), testing::AllOf(HasSubstr("'x'"), HasSubstr("'a'"), HasSubstr("'b'")));
}

TEST(Dataset, IndexValuesAreDecodedAndReadOnce) {
  MemoryData data;
  data.index<std::int32_t>("time", "<i4", {0, 6}, {{"units", "hours since 2000-01-01"}});
  const auto dataset = data.dataset();
  ASSERT_NE(dataset->index_of("time"), nullptr);
  // numpy.array(["2000-01-01T00", "2000-01-01T06"], "M8[ns]").astype("i8")
  EXPECT_EQ(values_of<std::int64_t>(dataset->index_values("time")),
            (std::vector<std::int64_t>{946684800000000000, 946706400000000000}));
  data.store->objects.clear();
  EXPECT_EQ(dataset->index_values("time").shape, Dims{2});
}

TEST(Dataset, DimensionsWithoutCoordinateHaveNoIndex) {
  MemoryData data;
  data.declare("v", "<f4", {"x", "y"}, {2, 2}, {2, 2})
      .declare("y", "<f4", {"y", "x"}, {2, 2}, {2, 2});
  const auto dataset = data.dataset();
  EXPECT_EQ(dataset->index_of("x"), nullptr);
  EXPECT_EQ(dataset->index_of("y"), nullptr);
  const Error error = error_of([&] { dataset->index_values("x"); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_THAT(error.why(), HasSubstr("'#0:#4'"));
}

TEST(Dataset, OneArrayThatCannotBeReadSpoilsNothing) {
  MemoryData data;
  data.add<float>("good", "<f4", {"x"}, {2}, {1, 2})
      .declare("bad", "<i2", {"x"}, {2}, {2}, {{"scale_factor", "x"}});
  const auto dataset = data.dataset();
  EXPECT_EQ(dataset->variable("bad").array, nullptr);
  EXPECT_THAT(dataset->variable("bad").unsupported, HasSubstr("scale_factor"));
  const Error error = error_of([&] { read_variable(dataset->variable("bad")); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_EQ(error.where(), "bad");
  EXPECT_EQ(values_of<float>(read_variable(dataset->variable("good"))), (std::vector<float>{1, 2}));
}

TEST(Dataset, LabelsOfOneSelectionAreInMemoryOnce) {
  MemoryData data;
  data.index<double>("x", "<f8", {0, 1, 2, 3});
  const auto dataset = data.dataset();
  const auto all = dataset->labels_at("x", Positions::range(0, 4));
  EXPECT_EQ(all.get(), &dataset->index_values("x"));
  auto list = dataset->labels_at("x", Positions::list({3, 1}));
  EXPECT_EQ(values_of<double>(*list), (std::vector<double>{3, 1}));
  EXPECT_EQ(dataset->labels_at("x", Positions::list({3, 1})), list);
  EXPECT_NE(dataset->labels_at("x", Positions::range(1, 2)), list);
  std::set<const Dataset*> counted;
  EXPECT_EQ(dataset->held_labels(counted), 6 * sizeof(double));
  EXPECT_EQ(dataset->held_labels(counted), 0u);
  list = nullptr;
  counted.clear();
  EXPECT_EQ(dataset->held_labels(counted), 4 * sizeof(double));
}

TEST(Dataset, CoordinatesAreInheritedFromTheGroupsAbove) {
  MemoryData data;
  data.index<double>("t", "<f8", {0, 1})
      .index<double>("x", "<f8", {0, 1, 2})
      .index<double>("other", "<f8", {0})
      .add<double>("a/x", "<f8", {"x"}, {3}, {10, 11, 12})
      .declare("a/b/v", "<f8", {"t", "x", "y"}, {2, 3, 4}, {1, 3, 4})
      .declare("a/b/w", "<f8", {"z"}, {5}, {5})
      .index<double>("y", "<f8", {0, 1, 2})
      .add<double>("a/z", "<f8", {"z", "t"}, {1, 2}, {0, 0})
      .index<double>("z", "<f8", {0, 1, 2, 3, 4});
  const Dataset dataset(data.store, data.hierarchy, "a/b");
  EXPECT_EQ(values_of<double>(dataset.index_values("t")), (std::vector<double>{0, 1}));
  EXPECT_EQ(values_of<double>(dataset.index_values("x")), (std::vector<double>{10, 11, 12}))
      << "the nearest";
  EXPECT_EQ(dataset.index_of("y"), nullptr) << "of another length";
  EXPECT_NE(dataset.index_of("z"), nullptr) << "the nearer array is not a coordinate";
  EXPECT_EQ(dataset.find("other"), nullptr);
  EXPECT_TRUE(dataset.variable("t").is_coordinate);
  const Dataset one(data.store, data.hierarchy, "a/b", std::set<std::string>{"w"});
  EXPECT_EQ(one.find("t"), nullptr) << "no array that is taken has the dimension";
  EXPECT_NE(one.index_of("z"), nullptr);
  const Dataset array(data.store, data.hierarchy, "a/b/v");
  EXPECT_EQ(values_of<double>(array.index_values("x")), (std::vector<double>{10, 11, 12}));
}

TEST(Dataset, LabelsGetHalfOfTheMemory) {
  MemoryData data;
  data.hierarchy.memory_limit = 4 << 20;
  const std::int64_t most = (kFreeMetadata + (2 << 20)) / 8;
  data.declare("x", "<f8", {"x"}, {most}, {1 << 20}, {}, 0)
      .declare("y", "<f8", {"y"}, {most + 1}, {1 << 20}, {}, 0)
      .declare("one", "<f8", {"one"}, {1}, {1}, {}, 0);
  const auto dataset = data.dataset();
  const Error error = error_of([&] { dataset->index_values("y"); });
  EXPECT_EQ(error.code(), ErrorCode::no_memory);
  EXPECT_THAT(error.why(), HasSubstr("labels of 'y'"));
  EXPECT_EQ(dataset->index_values("x").shape, Dims{most});
  EXPECT_EQ(error_of([&] { dataset->index_values("one"); }).code(), ErrorCode::no_memory);
  EXPECT_EQ(error_of([&] { dataset->labels_at("x", Positions::range(0, 1)); }).code(),
            ErrorCode::no_memory);
}

}  // namespace dataset_test
}  // namespace batchfs
