#include "gpu/program/remote_fetches.h"

#include <utility>

namespace batchfs::gpu {

RemoteFetches::RemoteFetches(std::function<void()> arrived, Memory memory)
    : arrived_(std::move(arrived)), memory_(std::move(memory)) {}

RemoteFetches::~RemoteFetches() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return in_flight_ == 0; });
}

void RemoteFetches::start(const Array& array, const Key& key) {
  const auto result = std::make_shared<std::shared_ptr<Fetched>>();
  {
    const std::lock_guard lock(mutex_);
    if (!fetches_.emplace(key, Fetch{result, array.chunk_bytes()}).second) return;
    bytes_ += array.chunk_bytes();
    ++in_flight_;
  }
  array.fetch(array.grid().chunk(key.chunk), whole_box(array.grid().chunk_shape()),
              [this, result](Fetched outcome) {
                struct Held {
                  Fetched fetched;
                  Budget::Reservation memory;
                };
                const auto held = std::make_shared<Held>(Held{std::move(outcome), {}});
                if (const auto* chunk = std::get_if<EncodedChunk>(&held->fetched);
                    chunk != nullptr && memory_.hold)
                  held->memory = memory_.hold(chunk->bytes.size());
                {
                  const std::lock_guard lock(mutex_);
                  *result = std::shared_ptr<Fetched>(held, &held->fetched);
                }
                if (arrived_) arrived_();
                const std::lock_guard lock(mutex_);
                --in_flight_;
                changed_.notify_all();
              });
}

bool RemoteFetches::is_in_flight(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = fetches_.find(key);
  return found != fetches_.end() && *found->second.result == nullptr;
}

bool RemoteFetches::has_room() const {
  const std::lock_guard lock(mutex_);
  return bytes_ < memory_.most;
}

std::shared_ptr<Fetched> RemoteFetches::take(const Key& key) {
  std::unique_lock lock(mutex_);
  const auto found = fetches_.find(key);
  changed_.wait(lock, [&] { return *found->second.result != nullptr; });
  std::shared_ptr<Fetched> fetched = std::move(*found->second.result);
  erase(found);
  return fetched;
}

void RemoteFetches::drop(const Key& key) {
  const std::lock_guard lock(mutex_);
  if (const auto found = fetches_.find(key); found != fetches_.end()) erase(found);
}

void RemoteFetches::erase(std::map<Key, Fetch>::iterator fetch) {
  bytes_ -= fetch->second.bytes;
  fetches_.erase(fetch);
}

}  // namespace batchfs::gpu
