#pragma once
// A disk cache in front of objects in memory.

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "engine/store/cache/disk_cache.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace cached_origin {

/// Objects with versions, in memory; counts requests and bytes sent.
class Origin final : public Store {
 public:
  std::string url() const override { return "memory://origin"; }
  std::optional<Buffer> read(const std::string&, ByteRange) override {
    throw Error(ErrorCode::internal, "not used");
  }
  std::optional<PartRead> read_into(const std::string&, std::uint64_t,
                                    std::span<std::byte>) override {
    throw Error(ErrorCode::internal, "not used");
  }
  std::vector<Entry> list(const std::string&) override { return {{"t", true}}; }
  std::vector<Counter> counters() const override { return {{"requests", requests.load()}}; }
  std::optional<std::uint64_t> size(const std::string& key) override {
    ++requests;
    const std::lock_guard lock(mutex_);
    const auto it = objects_.find(key);
    return it == objects_.end() ? std::nullopt
                                : std::optional<std::uint64_t>(it->second.first.size());
  }

  void read_version_async(const std::string& key, ByteRange range, const std::string& known,
                          VersionedDone done) override {
    ++requests;
    if (fail) return done(std::make_exception_ptr(Error(ErrorCode::io, "the line is dead", key)));
    VersionedRead read;
    {
      const std::lock_guard lock(mutex_);
      const auto it = objects_.find(key);
      if (it != objects_.end()) {
        const auto& [text, version] = it->second;
        if (range.from_end)
          range.offset = text.size() - std::min<std::uint64_t>(range.length, text.size());
        const std::string part =
            range.offset < text.size() ? text.substr(range.offset, range.length) : "";
        read.unchanged = !known.empty() && known == version;
        read.version = version;
        read.object_size = text.size();
        if (!read.unchanged) {
          read.bytes = Buffer(part.size());
          std::copy_n(part.data(), part.size(), reinterpret_cast<char*>(read.bytes->data()));
          sent += part.size();
        }
      }
    }
    if (!read.bytes && !read.unchanged)
      if (const auto call = std::exchange(before_missing, nullptr)) call();
    done(std::move(read));
  }

  void set(const std::string& key, const std::string& bytes, const std::string& version) {
    const std::lock_guard lock(mutex_);
    objects_[key] = {bytes, version};
  }
  void remove(const std::string& key) {
    const std::lock_guard lock(mutex_);
    objects_.erase(key);
  }

  std::atomic<std::uint64_t> requests{0}, sent{0};
  std::atomic<bool> fail{false};
  std::function<void()> before_missing;  // called once, before the next answer "missing"

 private:
  std::mutex mutex_;
  std::map<std::string, std::pair<std::string, std::string>> objects_;
};

inline std::string content(int seed, std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    text[i] = static_cast<char>(i * 31 / 7 + static_cast<std::size_t>(seed) * 17);
  return text;
}

inline std::optional<std::string> read(Store& store, const std::string& key, ByteRange range = {}) {
  const std::optional<Buffer> bytes = store.read(key, range);
  if (!bytes) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

inline std::uint64_t counter(Store& store, const std::string& name) {
  for (const Store::Counter& each : store.counters())
    if (each.name == name) return each.value;
  ADD_FAILURE() << name;
  return 0;
}

template <class Body>
ErrorCode error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

class CachedOrigin : public testing::Test {
 protected:
  CachedOrigin() {
    origin->set("zarr.json", "{}", "m1");
    for (int i = 0; i < 10; ++i)
      origin->set("t/c/" + std::to_string(i), content(i, 5000), "c" + std::to_string(i));
  }
  /// A mount: a new store over the same origin and directory.
  std::shared_ptr<Store> mount() {
    origin->requests = origin->sent = 0;
    DiskCacheOptions with = options;
    with.directory = directory / "c";
    return open_disk_cache(origin, with);
  }
  /// Fills the cache like a mount that has ended.
  void fill() {
    const auto store = mount();
    read(*store, "zarr.json");
    for (int i = 0; i < 10; ++i) read(*store, "t/c/" + std::to_string(i));
  }
  /// Reads an object that exists for another reader only: this reader's answer says that it is
  /// missing.
  std::optional<std::string> appear_and_go(Store& store) {
    origin->before_missing = [&] {
      origin->set("short", "0123456789", "n1");
      EXPECT_EQ(read(store, "short"), "0123456789");
      origin->remove("short");
    };
    return read(store, "short", {0, 4});
  }

  const TemporaryDirectory directory;
  const std::shared_ptr<Origin> origin = std::make_shared<Origin>();
  DiskCacheOptions options;
};

}  // namespace cached_origin
}  // namespace batchfs
