#pragma once
// Arrays whose chunks are made when they are read, with knobs for tests: counting, failing,
// waiting, answering from other threads.

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "engine/array/array.h"
#include "engine/dataset/dataset.h"
#include "engine/view/view.h"

namespace batchfs {

/// Holds int32 chunks in which element i of chunk c is 1000 * c + i.
class FakeStore final : public Store {
 public:
  explicit FakeStore(std::size_t elements) : elements_(elements) {}
  ~FakeStore() override {
    for (std::thread& thread : threads_) thread.join();
  }

  std::string url() const override { return "fake"; }
  bool is_local() const override { return !asynchronous; }

  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    ++asked;
    {
      std::unique_lock lock(mutex_);
      opened_.wait(lock, [this] { return !closed_ || stopped_; });
      if (stopped_) throw Error(ErrorCode::interrupted, "stopped", key);
    }
    ++reads;
    const int chunk = std::stoi(key.substr(2));  // "v/3/0"
    if (chunk == failing) throw Error(ErrorCode::io, "the disk is on fire", key);
    if (chunk == missing) return std::nullopt;
    Buffer all(size_of_object());
    if (blosc_block != 0) {
      const auto bytes = static_cast<std::uint32_t>(elements_ * 4);
      // Version 2, copied, elements of four bytes (c-blosc, README_CHUNK_FORMAT).
      const std::uint32_t header[] = {0x04020102, bytes, blosc_block, bytes + kBloscHeader};
      std::memcpy(all.data(), header, sizeof header);
    }
    std::byte* values = all.data() + (blosc_block == 0 ? 0 : kBloscHeader);
    for (std::size_t i = 0; i < elements_; ++i) {
      const auto value = static_cast<std::int32_t>(1000 * chunk + static_cast<int>(i));
      std::memcpy(values + 4 * i, &value, 4);
    }
    const std::uint64_t length = std::min<std::uint64_t>(range.length, all.size() - range.offset);
    Buffer part(length);
    std::memcpy(part.data(), all.data() + range.offset, length);
    return part;
  }
  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override {
    const auto bytes = read(key, {offset, out.size()});
    if (!bytes) return std::nullopt;
    std::memcpy(out.data(), bytes->data(), bytes->size());
    return PartRead{bytes->size(), size_of_object()};
  }
  void read_async(const std::string& key, ByteRange range, ReadDone done) override {
    if (!asynchronous) return Store::read_async(key, range, std::move(done));
    const std::lock_guard lock(mutex_);
    threads_.emplace_back(
        [this, key, range, done = std::move(done)] { Store::read_async(key, range, done); });
  }
  std::optional<std::uint64_t> size(const std::string&) override { return size_of_object(); }
  std::vector<Entry> list(const std::string&) override { return {}; }

  void stop() override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    opened_.notify_all();
  }

  /// While closed, reads wait.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    closed_ = false;
    opened_.notify_all();
  }

  std::atomic<int> asked{0}, reads{0};  // begun, and not held up any more
  std::atomic<int> failing{-1}, missing{-1};
  bool asynchronous = false;
  std::uint32_t blosc_block = 0;  // bytes; not 0: Blosc frames with such blocks, not compressed

 private:
  static constexpr std::uint32_t kBloscHeader = 16;
  std::uint64_t size_of_object() const {
    return elements_ * 4 + (blosc_block == 0 ? 0 : kBloscHeader);
  }

  const std::size_t elements_;
  std::mutex mutex_;
  std::condition_variable opened_;
  bool closed_ = false, stopped_ = false;
  std::vector<std::thread> threads_;
};

/// Filters that change nothing, but a chunk is then read as a whole.
inline constexpr const char* kWholeChunks = R"([{"id": "shuffle", "elementsize": 1}])";

/// Frames of FakeStore::blosc_block.
inline constexpr const char* kBlosc =
    R"({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 0, "blocksize": 0})";

/// A dataset with one variable "v" (time, x): `chunks` chunks of `steps` times of `width` values.
struct FakeData {
  FakeData(std::int64_t chunks, std::int64_t steps, std::int64_t width,
           const std::string& filters = "null", const std::string& compressor = "null")
      : store(std::make_shared<FakeStore>(static_cast<std::size_t>(steps * width))) {
    const std::string zarray =
        R"({"zarr_format": 2, "shape": [)" + std::to_string(chunks * steps) + ", " +
        std::to_string(width) + R"(], "chunks": [)" + std::to_string(steps) + ", " +
        std::to_string(width) +
        R"(], "dtype": "<i4", "fill_value": null, "order": "C", "dimension_separator": "/",
            "filters": )" +
        filters + R"(, "compressor": )" + compressor + "}";
    const Json attributes = {{"_ARRAY_DIMENSIONS", {"time", "x"}}};
    hierarchy.groups[""] = {};
    hierarchy.arrays["v"] = parse_array_v2("v", parse_json(zarray, "v"), attributes, "v");
    dataset = std::make_shared<const Dataset>(store, hierarchy);
  }

  std::shared_ptr<const View> view(const std::string& json) const {
    return View::parse(dataset, json, "v", "test");
  }

  std::shared_ptr<FakeStore> store;
  Hierarchy hierarchy;
  std::shared_ptr<const Dataset> dataset;
};

}  // namespace batchfs
