#include "engine/store/virtual/index_cache.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/store/object_versions.h"

namespace batchfs {

IndexCache::IndexCache(std::shared_ptr<Store> store, Limits limits, std::string name, Decode decode)
    : limits_(limits),
      name_(std::move(name)),
      decode_(std::move(decode)),
      store_(std::move(store)) {}

IndexCache::~IndexCache() {
  store_->stop();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return under_way_ == 0; });
}

void IndexCache::get(const std::string& key, std::uint64_t bytes, Done done) {
  std::shared_ptr<const void> contents;
  {
    const std::lock_guard lock(mutex_);
    const auto [it, is_new] = entries_.try_emplace(key);
    Entry& entry = it->second;
    if (entry.index) {
      used_.splice(used_.begin(), used_, entry.use);
      contents = entry.index->contents;
    } else {
      entry.waiting.push_back(std::move(done));
      if (!is_new) return;
      entry.bytes = bytes;
      to_load_.push_back(key);
    }
  }
  if (contents != nullptr) return done(std::move(contents));
  start_more();
}

/// Starts as many files as the memory for one decompressed file holds.
void IndexCache::start_more() {
  for (;;) {
    std::string key;
    {
      const std::lock_guard lock(mutex_);
      if (to_load_.empty()) return;
      const std::uint64_t bytes = entries_.at(to_load_.front()).bytes;
      if (loads_ > 0 && (bytes > limits_.payload || loading_ > limits_.payload - bytes)) return;
      key = std::move(to_load_.front());
      to_load_.pop_front();
      loading_ += bytes;
      ++loads_;
      ++under_way_;
    }
    load(key);
  }
}

void IndexCache::load(const std::string& key) {
  if (!store_->is_local()) {
    store_->read_async(
        key, {0, UINT64_MAX, false, limits_.payload}, [this, key](ReadOutcome outcome) {
          const auto shared = std::make_shared<ReadOutcome>(std::move(outcome));
          decoder_.post(0, [this, key, shared] { arrived(key, std::move(*shared), false); });
        });
    return;
  }
  ReadOutcome outcome;
  try {
    const std::optional<std::uint64_t> size = store_->size(key);
    if (size && *size > limits_.payload)
      throw Error(ErrorCode::no_memory,
                  fmt::format("the file has {}, and one file gets half of --memory, {}; give more",
                              format_size(*size), format_size(limits_.payload)));
    outcome = store_->read(key);
  } catch (...) {
    outcome = std::current_exception();
  }
  arrived(key, std::move(outcome), true);
}

void IndexCache::arrived(const std::string& key, ReadOutcome outcome, bool is_last) {
  std::variant<DecodedIndex, std::exception_ptr> result;
  try {
    if (const auto* error = std::get_if<std::exception_ptr>(&outcome))
      std::rethrow_exception(*error);
    const std::lock_guard lock(decoding_);
    result = decode_(key, std::get<std::optional<Buffer>>(outcome));
  } catch (Error& error) {
    if (error.code() == ErrorCode::corrupt && !is_last)
      return read_past_caches(
          *store_, key, {0, UINT64_MAX, false, limits_.payload}, [this, key](ReadOutcome again) {
            const auto shared = std::make_shared<ReadOutcome>(std::move(again));
            decoder_.post(0, [this, key, shared] { arrived(key, std::move(*shared), true); });
          });
    result = std::make_exception_ptr(error.at(store_->url() + "/" + key));
  } catch (...) {
    result = std::current_exception();
  }
  if (auto* file = std::get_if<std::optional<Buffer>>(&outcome); file != nullptr && *file)
    (*file)->discard();
  outcome = std::nullopt;
  finish(key, std::move(result));
}

void IndexCache::finish(const std::string& key,
                        std::variant<DecodedIndex, std::exception_ptr> outcome) {
  std::vector<Done> waiting;
  Outcome answer;
  {
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(key);
    loading_ -= it->second.bytes;
    --loads_;
    waiting = std::move(it->second.waiting);
    if (auto* index = std::get_if<DecodedIndex>(&outcome)) {
      ++loaded_;
      answer = index->contents;
      memory_ += index->memory;
      it->second.index = std::move(*index);
      used_.push_front(key);
      it->second.use = used_.begin();
      while (memory_ > limits_.memory && used_.size() > 1) {
        const auto last = entries_.find(used_.back());
        memory_ -= last->second.index->memory;
        entries_.erase(last);
        used_.pop_back();
        ++evicted_;
      }
    } else {
      answer = std::get<std::exception_ptr>(outcome);
      entries_.erase(it);
    }
  }
  for (const Done& done : waiting) done(answer);
  start_more();
  const std::lock_guard lock(mutex_);
  --under_way_;
  ended_.notify_all();  // within the lock: the waiter destroys this
}

std::vector<Store::Counter> IndexCache::counters() const {
  const std::lock_guard lock(mutex_);
  return {
      {name_ + "s_loaded", loaded_}, {name_ + "s_evicted", evicted_}, {name_ + "_memory", memory_}};
}

}  // namespace batchfs
