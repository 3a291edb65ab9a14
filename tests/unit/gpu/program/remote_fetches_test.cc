#include "gpu/program/remote_fetches.h"

#include <atomic>
#include <memory>
#include <variant>

#include <gtest/gtest.h>

#include "tests/unit/eventually.h"
#include "tests/unit/gpu/held_store.h"

namespace batchfs::gpu {
namespace remote_fetches_test {

struct Remote {
  MemoryData data = coded_data(4, 1, 8, 8);
  const std::shared_ptr<HeldStore> store = std::make_shared<HeldStore>(data.store);
  const std::shared_ptr<const Dataset> dataset =
      std::make_shared<const Dataset>(store, data.hierarchy);
  const std::shared_ptr<const View> view = View::parse(dataset, kPairs, "v", "test");
  const Array& array = *view->variables()[0]->array;
};

TEST(RemoteFetches, AChunkIsFetchedOnceAndTakenWhenItHasArrived) {
  Remote remote;
  std::atomic<int> arrived{0};
  RemoteFetches fetches([&] { ++arrived; }, {});
  const RemoteFetches::Key key{0, 0};
  EXPECT_FALSE(fetches.is_in_flight(key));
  fetches.start(remote.array, key);
  fetches.start(remote.array, key);
  EXPECT_TRUE(fetches.is_in_flight(key));
  EXPECT_EQ(arrived, 0);
  remote.store->answer();
  EXPECT_TRUE(std::holds_alternative<EncodedChunk>(*fetches.take(key)));
  EXPECT_TRUE(eventually([&] { return arrived == 1; }));
  EXPECT_FALSE(fetches.is_in_flight(key));
  EXPECT_EQ(remote.store->reads, 1);
}

TEST(RemoteFetches, OneThatIsNotNeededEndsBeforeIt) {
  Remote remote;
  std::atomic<int> arrived{0};
  {
    RemoteFetches fetches([&] { ++arrived; }, {});
    fetches.start(remote.array, {0, 0});
    fetches.drop({0, 0});
    EXPECT_FALSE(fetches.is_in_flight({0, 0}));
    remote.store->answer();
  }
  EXPECT_EQ(arrived, 1);
}

}  // namespace remote_fetches_test
}  // namespace batchfs::gpu
