#include "engine/dataset/joined/concat_datasets.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace concat_datasets_test {

using testing::HasSubstr;

MemoryData store(const std::vector<std::int32_t>& x, const std::string& type = "<f4") {
  return MemoryData()
      .index<std::int32_t>("x", "<i4", x)
      .declare("t", type, {"x"}, {static_cast<std::int64_t>(x.size())}, {2})
      .declare("s", "<f4", {}, {}, {});
}
std::shared_ptr<const Dataset> concat(const std::vector<MemoryData>& parts,
                                      std::optional<std::string> dim = std::nullopt) {
  std::vector<ConcatPart> all;
  for (std::size_t p = 0; p < parts.size(); ++p)
    all.push_back({std::string(1, static_cast<char>('a' + p)), parts[p].dataset()});
  return concat_datasets(all, {std::move(dim), ConcatRule::Prefer::none, "sources.e"});
}
std::string refusal(const std::vector<MemoryData>& parts,
                    std::optional<std::string> dim = std::nullopt) {
  return error_of([&] { concat(parts, dim); }).why();
}

TEST(ConcatDatasets, PutsLabelsAndVariablesOneBehindTheOther) {
  const auto dataset = concat({store({1, 2, 3}), store({7}), store({8, 9})});
  EXPECT_EQ(dataset->dim_size("x"), 6);
  const NdArray& labels = dataset->index_values("x");
  EXPECT_EQ(labels.shape, Dims{6});
  EXPECT_EQ(reinterpret_cast<const std::int32_t*>(labels.data.data())[3], 7);
  const Variable& t = dataset->variable("t");
  ASSERT_TRUE(t.is_concatenated());
  EXPECT_EQ(t.shape, Dims{6});
  EXPECT_EQ(t.concat->parts[2].name, "c");
  EXPECT_EQ(t.concat->parts[2].positions[3], Positions::kNone);
  EXPECT_EQ(t.concat->parts[2].positions[5], 1);
  const Variable part = t.part_of(1);
  EXPECT_EQ(part.part_name(), "b");
  EXPECT_EQ(part.own_shape(), Dims{1});
  EXPECT_FALSE(dataset->variable("s").is_concatenated());
}

TEST(ConcatDatasets, RefusesPartsThatDoNotLieBehindOneAnother) {
  EXPECT_THAT(refusal({store({5, 6}), store({1, 2})}),
              HasSubstr("'x' of 'b' (1 to 2) does not lie behind 'a' (5 to 6)"));
  EXPECT_THAT(refusal({store({1, 2}), store({2, 3})}), HasSubstr("\"prefer\": \"last\""));
  EXPECT_NO_THROW(concat({store({9, 8}), store({7, 3})}));
  EXPECT_THAT(refusal({store({9, 8}), store({10, 11})}), HasSubstr("does not lie behind"));
  EXPECT_NO_THROW(concat({store({9}), store({7}), store({3})}));
  EXPECT_THAT(refusal({store({1, 2}), store({1, 2})}),
              HasSubstr("\"concat\": {\"dim\": \"member\"}"));
  EXPECT_THAT(refusal({store({1}), store({2})}, "y"), HasSubstr("has no dimension 'y'"));
}

TEST(ConcatDatasets, TakesLabelsOfSeveralPartsOnce) {
  const auto merged = [](ConcatRule::Prefer prefer) {
    std::vector<std::string> owners;
    const auto dataset =
        concat_datasets({{"a", store({3, 5, 7}).dataset()}, {"b", store({1, 5, 6}).dataset()}},
                        {"x", prefer, "sources.e"});
    for (std::int64_t i = 0; i < dataset->dim_size("x"); ++i)
      for (const ConcatAxis::Part& part : dataset->variable("t").concat->parts)
        if (part.positions[i] != Positions::kNone)
          owners.push_back(part.name + std::to_string(part.positions[i]));
    return owners;
  };
  using testing::ElementsAre;
  EXPECT_THAT(merged(ConcatRule::Prefer::first), ElementsAre("b0", "a0", "a1", "b2", "a2"));
  EXPECT_THAT(merged(ConcatRule::Prefer::last), ElementsAre("b0", "a0", "b1", "b2", "a2"));
}

TEST(ConcatDatasets, VariablesThatDifferCannotBeRead) {
  const auto dataset = concat({store({1, 2}), store({3}, "<i8")});
  EXPECT_FALSE(dataset->variable("t").is_readable());
  EXPECT_THAT(dataset->variable("t").unsupported, HasSubstr("float32 in 'a' and int64 in 'b'"));
}

}  // namespace concat_datasets_test
}  // namespace batchfs
