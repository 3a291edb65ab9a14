#include "tools/inspect/stored_size.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace stored_size_test {

TEST(StoredSize, IsOfAllObjectsBelowThePath) {
  MemoryStore store;
  store.set("zarr.json", "12345");
  store.set("a/zarr.json", "123");
  store.set("a/c/0/0", "1234");
  store.set("a/c/0/1", "12345678");
  store.set("ab/c/0", "1");
  EXPECT_EQ(stored_size(store, "a"), 15u);
  EXPECT_EQ(stored_size(store, "a", std::chrono::steady_clock::time_point::max(), 8), 15u);
  EXPECT_EQ(stored_size(store, ""), 21u);
  EXPECT_EQ(stored_size(store, "nothing"), 0u);
}

TEST(StoredSize, IsNotKnownAfterTheDeadline) {
  MemoryStore store;
  store.set("a/0", "1234");
  EXPECT_EQ(stored_size(store, "a", std::chrono::steady_clock::now() - std::chrono::seconds(1)),
            std::nullopt);
}

}  // namespace stored_size_test
}  // namespace batchfs
