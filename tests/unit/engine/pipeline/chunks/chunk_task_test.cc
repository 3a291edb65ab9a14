#include "engine/pipeline/chunks/chunk_task.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace chunk_task_test {

ChunkConsumer consumer(Urgency urgency, bool started = true, bool cancelled = false) {
  auto assembly = std::make_shared<Assembly>();
  assembly->urgency = urgency;
  assembly->started = started;
  assembly->cancelled = cancelled;
  return {std::move(assembly), nullptr, {}};
}

TEST(ChunkTask, IsAsUrgentAsItsMostUrgentStartedConsumer) {
  ChunkTask task;
  EXPECT_EQ(task.urgency(), ChunkTask::kNever);
  EXPECT_EQ(task.most_urgent(), nullptr);
  task.consumers = {consumer(9), consumer(2, false), consumer(5)};
  EXPECT_EQ(task.urgency(), 5);
  EXPECT_EQ(task.most_urgent(), &task.consumers[2]);
}

TEST(ChunkTask, RunsForCancelledConsumersToo) {
  ChunkTask task;
  task.consumers = {consumer(7, false, true)};
  EXPECT_EQ(task.urgency(), 7) << "it must be told";
  EXPECT_EQ(task.most_urgent(), nullptr) << "but nothing is brought for it";
}

TEST(ChunkTask, AChunkWantedForItselfIsAGuess) {
  ChunkTask task;
  task.warm = true;
  EXPECT_EQ(task.urgency(), kReadAhead);
}

TEST(ChunkTask, TakesConsumersInOrderAndPutsThemBackFirst) {
  ChunkTask task;
  for (const Urgency urgency : {1, 2, 3, 4}) task.consumers.push_back(consumer(urgency));
  const auto even = [](const ChunkConsumer& one) { return one.assembly->urgency % 2 == 0; };
  std::vector<ChunkConsumer> taken = task.take(even);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].assembly->urgency, 2);
  EXPECT_EQ(taken[1].assembly->urgency, 4);
  EXPECT_EQ(task.consumers.size(), 2u);
  EXPECT_TRUE(task.take(even).empty());
  task.put_back(std::move(taken));
  const Urgency order[] = {2, 4, 1, 3};
  ASSERT_EQ(task.consumers.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(task.consumers[i].assembly->urgency, order[i]);
}

}  // namespace chunk_task_test
}  // namespace batchfs
