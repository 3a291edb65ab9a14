#include "engine/dataset/joined/stack_datasets.h"

#include <gmock/gmock.h>

#include "engine/dataset/read_variable.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace stack_datasets_test {

using testing::HasSubstr;

MemoryData store(const std::vector<std::int32_t>& x) {
  return MemoryData()
      .index<std::int32_t>("x", "<i4", x)
      .add<float>("t", "<f4", {"x"}, {2}, {1, 2})
      .declare("s", "<f4", {}, {}, {});
}
std::shared_ptr<const Dataset> stack(const std::vector<MemoryData>& parts,
                                     const std::vector<std::string>& keys,
                                     std::vector<Json> labels = {}, std::string dim = "member") {
  StackedArrays arrays;
  std::vector<ConcatPart> all;
  for (std::size_t p = 0; p < parts.size(); ++p) all.push_back({keys[p], parts[p].dataset()});
  return stack_datasets(
      all, keys, {std::move(dim), ConcatRule::Prefer::none, "sources.e", true, std::move(labels)},
      arrays);
}

TEST(StackDatasets, DataVariablesHaveTheNewDimensionFirst) {
  const auto dataset = stack({store({1, 2}), store({1, 2}), store({1, 2})}, {"00", "01", "02"});
  EXPECT_EQ(dataset->dim_size("member"), 3);
  EXPECT_EQ(dataset->dims().front().first, "member");
  const NdArray& labels = dataset->index_values("member");
  EXPECT_EQ(labels.type.name(), "int64");
  EXPECT_EQ(values_of<std::int64_t>(labels), (std::vector<std::int64_t>{0, 1, 2}));
  const Variable& t = dataset->variable("t");
  EXPECT_EQ(t.dims, (Names{"member", "x"}));
  EXPECT_EQ(t.shape, (Dims{3, 2}));
  EXPECT_EQ(t.concat->parts[2].positions[2], 0);
  EXPECT_EQ(t.concat->parts[2].positions[0], Positions::kNone);
  EXPECT_EQ(t.part_of(1).array->chunk_name({0, 0}), "t/0");
  EXPECT_EQ(dataset->variable("s").shape, Dims{3});
  EXPECT_EQ(dataset->variable("x").shape, Dims{2});
  EXPECT_EQ(values_of<float>(read_variable(t)), (std::vector<float>{1, 2, 1, 2, 1, 2}));
}

TEST(StackDatasets, TextsHaveRoomForTheLongest) {
  const auto texts = [](const char* dtype, const std::vector<char>& bytes) {
    return store({1, 2}).add<char>("name", dtype, {"x"}, {2}, bytes);
  };
  const auto dataset =
      stack({texts("|S2", {'a', 'b', 'c', 0}), texts("|S4", {'d', 'e', 'f', 'g', 'h', 0, 0, 0}),
             texts("|S2", {'i', 'j', 'k', 'l'})},
            {"0", "1", "2"});
  const Variable& name = dataset->variable("name");
  EXPECT_EQ(name.dims, (Names{"member", "x"}));
  EXPECT_EQ(name.cf.decoded.itemsize, 4U);
  const NdArray values = read_variable(name);
  EXPECT_EQ(values.shape, (Dims{3, 2}));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(values.data.data()), values.data.size()),
            std::string("ab\0\0c\0\0\0defgh\0\0\0ij\0\0kl\0\0", 24));
}

TEST(StackDatasets, LabelsAreGivenOrStoredOrNames) {
  const auto two = [](std::vector<Json> labels, int first, int second) {
    std::vector<MemoryData> parts;
    for (const int value : {first, second})
      parts.push_back(store({1, 2}).add<std::int32_t>("member", "<i4", {}, {}, {value}));
    return stack(parts, {"a", "b"}, std::move(labels));
  };
  EXPECT_EQ(values_of<double>(two({0.5, 2}, 1, 2)->index_values("member")),
            (std::vector<double>{0.5, 2}));
  EXPECT_EQ(values_of<std::int64_t>(two({}, 7, 3)->index_values("member")),
            (std::vector<std::int64_t>{7, 3}));
  EXPECT_EQ(two({}, 3, 3)->index_values("member").type.kind, Kind::unicode)
      << "the stored ones do not tell them apart";
  EXPECT_EQ(stack({store({1, 2}), store({1, 2})}, {"1", "01"})->index_values("member").type.kind,
            Kind::unicode);
}

TEST(StackDatasets, StackingTwiceGivesTheSameArrays) {
  StackedArrays arrays;
  const std::vector<ConcatPart> parts{{"a", store({1, 2}).dataset()},
                                      {"b", store({1, 2}).dataset()}};
  const ConcatRule rule{"member", ConcatRule::Prefer::none, "", true, {}};
  const auto one = stack_datasets(parts, {"0", "1"}, rule, arrays);
  const auto two = stack_datasets(parts, {"0", "1"}, rule, arrays);
  EXPECT_EQ(one->variable("t").parts[1]->array, two->variable("t").parts[1]->array);
}

TEST(StackDatasets, RefusesStoresThatDiffer) {
  const auto refusal = [](const std::vector<MemoryData>& parts, std::vector<Json> labels,
                          const std::string& dim) {
    return error_of([&] { stack(parts, {"a", "b"}, std::move(labels), dim); }).why();
  };
  const std::vector<MemoryData> equal{store({1, 2}), store({1, 2})};
  EXPECT_THAT(refusal({store({1, 2}), store({1, 3})}, {}, "member"),
              HasSubstr("the first difference is 2 and 3 at position 1"));
  EXPECT_THAT(refusal(equal, {}, "x"), HasSubstr("\"concat\": \"x\""));
  EXPECT_THAT(refusal(equal, {}, "t"), HasSubstr("'a' has a variable 't'"));
  EXPECT_THAT(refusal(equal, {1}, "member"), HasSubstr("1 labels for 2 stores"));
}

}  // namespace stack_datasets_test
}  // namespace batchfs
