#include "engine/write/shard_advice.h"

#include <gmock/gmock.h>

#include "engine/dataset/dataset.h"
#include "engine/write/rechunk.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace shard_advice_test {

using testing::ElementsAre;
using testing::Pair;

class ShardAdviceTest : public testing::Test {
 protected:
  ShardAdviceTest() {
    hierarchy_->groups[""] = {};
    options_.compression = parse_compression("none");
    options_.memory = std::uint64_t{1} << 30;
    options_.chunks = {{"t", 1}, {"y", 40}, {"x", 50}};
  }

  void declare(const std::string& name, const std::vector<std::int64_t>& shape,
               const std::vector<std::string>& dims, std::vector<std::int64_t> chunks = {}) {
    if (chunks.empty()) chunks = shape;
    const Json document = {{"zarr_format", 2}, {"shape", shape},        {"chunks", chunks},
                           {"dtype", "<f4"},   {"compressor", nullptr}, {"fill_value", 0},
                           {"order", "C"},     {"filters", nullptr}};
    hierarchy_->arrays.emplace(
        name, parse_array_v2(name, document, {{"_ARRAY_DIMENSIONS", dims}}, name + "/.zarray"));
  }
  std::optional<ShardAdvice> advice() const {
    return advise_on_shards(Rechunk(store_, hierarchy_, options_).arrays());
  }

  const std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  const std::shared_ptr<Hierarchy> hierarchy_ = std::make_shared<Hierarchy>();
  RechunkOptions options_;
};

TEST_F(ShardAdviceTest, ManySmallObjects) {
  declare("a", {1000, 400, 500}, {"t", "y", "x"}, {100, 40, 50});
  declare("t", {1000}, {"t"});  // keeps its one chunk
  const auto found = advice();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->array, "a");
  EXPECT_EQ(found->objects, 100'000u);
  EXPECT_EQ(found->bytes, 8000u);
  EXPECT_THAT(found->shards, ElementsAre(Pair("t", 64), Pair("y", 400), Pair("x", 500)));
  EXPECT_EQ(found->remaining, 16u);
  options_.shards = {found->shards.begin(), found->shards.end()};
  EXPECT_FALSE(advice());
}

TEST_F(ShardAdviceTest, FewObjectsAndLargeOnesAreGood) {
  declare("a", {999, 400, 500}, {"t", "y", "x"}, {100, 40, 50});
  EXPECT_FALSE(advice());
  declare("b", {200000, 400, 700}, {"t", "v", "u"}, {1, 400, 700});
  EXPECT_FALSE(advice());
}

TEST_F(ShardAdviceTest, LengthsThatAnotherArrayCannotHaveAreNotProposed) {
  options_.chunks = {{"t", 1}, {"y", 1}};
  declare("a", {2000, 50, 40}, {"t", "y", "z"}, {2000, 50, 8});
  declare("b", {10, 42}, {"t", "z"}, {10, 7});
  const auto found = advice();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->objects, 500'000u);
  EXPECT_THAT(found->shards, ElementsAre(Pair("t", 2000), Pair("y", 50)));
  EXPECT_EQ(found->remaining, 5u);
  options_.shards = {found->shards.begin(), found->shards.end()};
  EXPECT_FALSE(advice());
}

}  // namespace shard_advice_test
}  // namespace batchfs
