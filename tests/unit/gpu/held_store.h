#pragma once
// A remote store that answers when a test says so.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/gpu/coded_data.h"

namespace batchfs::gpu {

/// Answers after answer().
class HeldStore final : public Store {
 public:
  explicit HeldStore(std::shared_ptr<MemoryObjects> store) : store_(std::move(store)) {}
  ~HeldStore() override {
    for (std::thread& thread : threads_) thread.join();
  }
  std::string url() const override { return "held"; }
  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    return store_->read(key, range);
  }
  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override {
    return store_->read_into(key, offset, out);
  }
  std::optional<std::uint64_t> size(const std::string& key) override { return store_->size(key); }
  std::vector<Entry> list(const std::string&) override { return {}; }
  void read_async(const std::string& key, ByteRange range, ReadDone done) override {
    ++reads;
    threads_.emplace_back([this, key, range, done = std::move(done)] {
      answered_.wait(false);
      done(read(key, range));
    });
  }
  int reads = 0;
  void answer() {
    answered_ = true;
    answered_.notify_all();
  }

 private:
  const std::shared_ptr<MemoryObjects> store_;
  std::atomic<bool> answered_{false};
  std::vector<std::thread> threads_;
};

}  // namespace batchfs::gpu
