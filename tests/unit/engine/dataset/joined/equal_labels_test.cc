#include "engine/dataset/joined/equal_labels.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace equal_labels_test {

template <class T>
std::shared_ptr<const Dataset> with(const std::string& type, const std::vector<T>& labels) {
  return MemoryData().index<T>("x", type, labels).dataset();
}

TEST(EqualLabels, ComparesValues) {
  const auto own = with<std::int32_t>("<i4", {1, 2, 3});
  EXPECT_TRUE(are_equal_labels(own->index("x"), with<std::int32_t>("<i4", {1, 2, 3})->index("x")));
  EXPECT_TRUE(are_equal_labels(own->index("x"), with<std::int64_t>("<i8", {1, 2, 3})->index("x")));
  EXPECT_FALSE(are_equal_labels(own->index("x"), with<std::int32_t>("<i4", {1, 3, 2})->index("x")));
  EXPECT_FALSE(are_equal_labels(own->index("x"), with<std::int32_t>("<i4", {1, 2})->index("x")));
}

}  // namespace equal_labels_test
}  // namespace batchfs
