#pragma once
// A chunk on its way, and the uses of it that wait.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "engine/pipeline/chunks/assembly.h"
#include "engine/pipeline/chunks/chunk_cache.h"
#include "engine/pipeline/chunks/chunk_decoder.h"
#include "engine/pipeline/executor.h"

namespace batchfs {

/// Not thread-safe: guarded by the scheduler's lock.
struct ChunkTask {
  static constexpr Urgency kNever = INT64_MAX;

  ChunkKey key;
  std::shared_ptr<const Array> array;
  std::vector<ChunkConsumer> consumers = {};
  Urgency posted = kNever;       // of the most urgent ticket in the executor's queue
  Executor::Ticket ticket = {};  // that one; of others none is in the queue
  bool running = false;
  std::function<void()> arrived = nullptr;  // decodes the fetched chunk; null once begun
  bool warm = false;                        // wanted for itself, without a consumer

  /// Takes the consumers that fulfil `which` out of the waiting ones, in order.
  template <class Which>
  std::vector<ChunkConsumer> take(Which&& which) {
    const auto first =
        std::stable_partition(consumers.begin(), consumers.end(),
                              [&](const ChunkConsumer& consumer) { return !which(consumer); });
    std::vector<ChunkConsumer> taken(std::make_move_iterator(first),
                                     std::make_move_iterator(consumers.end()));
    consumers.erase(first, consumers.end());
    return taken;
  }

  /// Puts `back` before the waiting ones.
  void put_back(std::vector<ChunkConsumer> back) {
    consumers.insert(consumers.begin(), std::make_move_iterator(back.begin()),
                     std::make_move_iterator(back.end()));
  }

  /// The most urgent consumer that is started; null when none is.
  const ChunkConsumer* most_urgent() const {
    const ChunkConsumer* first = nullptr;
    for (const ChunkConsumer& consumer : consumers)
      if (consumer.assembly->started.load(std::memory_order_relaxed) &&
          (first == nullptr || consumer.assembly->urgency.load() < first->assembly->urgency.load()))
        first = &consumer;
    return first;
  }

  /// How urgently it must run: by its started consumers, or for cancelled ones that must be
  /// notified; kNever when there are none.
  Urgency urgency() const {
    Urgency urgency = warm ? kReadAhead : kNever;
    for (const ChunkConsumer& consumer : consumers)
      if (consumer.assembly->started.load(std::memory_order_relaxed) ||
          consumer.assembly->cancelled.load(std::memory_order_relaxed))
        urgency = std::min(urgency, consumer.assembly->urgency.load(std::memory_order_relaxed));
    return urgency;
  }
};

}  // namespace batchfs
