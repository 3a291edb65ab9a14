#include "gpu/program/remote_fetches.h"

#include <utility>

namespace batchfs::gpu {

RemoteFetches::RemoteFetches(std::function<void()> arrived) : arrived_(std::move(arrived)) {}

RemoteFetches::~RemoteFetches() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return in_flight_ == 0; });
}

void RemoteFetches::start(const Array& array, const Key& key) {
  const auto result = std::make_shared<std::shared_ptr<Fetched>>();
  {
    const std::lock_guard lock(mutex_);
    if (!fetches_.emplace(key, result).second) return;
    ++in_flight_;
  }
  array.fetch(array.grid().chunk(key.chunk), whole_box(array.grid().chunk_shape()),
              [this, result](Fetched outcome) {
                auto fetched = std::make_shared<Fetched>(std::move(outcome));
                {
                  const std::lock_guard lock(mutex_);
                  *result = std::move(fetched);
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
  return found != fetches_.end() && *found->second == nullptr;
}

std::shared_ptr<Fetched> RemoteFetches::take(const Key& key) {
  std::unique_lock lock(mutex_);
  const auto found = fetches_.find(key);
  changed_.wait(lock, [&] { return *found->second != nullptr; });
  std::shared_ptr<Fetched> fetched = std::move(*found->second);
  fetches_.erase(found);
  return fetched;
}

void RemoteFetches::drop(const Key& key) {
  const std::lock_guard lock(mutex_);
  fetches_.erase(key);
}

}  // namespace batchfs::gpu
