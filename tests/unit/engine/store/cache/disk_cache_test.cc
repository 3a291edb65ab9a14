#include "engine/store/cache/disk_cache.h"

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/awaited.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace disk_cache_test {

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

std::string content(int seed, std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    text[i] = static_cast<char>(i * 31 / 7 + static_cast<std::size_t>(seed) * 17);
  return text;
}

std::optional<std::string> read(Store& store, const std::string& key, ByteRange range = {}) {
  const std::optional<Buffer> bytes = store.read(key, range);
  if (!bytes) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

std::uint64_t counter(Store& store, const std::string& name) {
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

class DiskCache : public testing::Test {
 protected:
  DiskCache() {
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

TEST_F(DiskCache, ASecondMountAsksOnceAndIsSentNothing) {
  fill();
  EXPECT_EQ(origin->requests, 11);
  EXPECT_EQ(origin->sent, 50002);
  const auto store = mount();
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(read(*store, "zarr.json"), "{}");
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(read(*store, "t/c/" + std::to_string(i)), content(i, 5000));
    EXPECT_EQ(origin->requests, 11);
    EXPECT_EQ(origin->sent, 0);
  }
  EXPECT_EQ(counter(*store, "disk_cache_confirmed"), 11);
  EXPECT_EQ(counter(*store, "disk_cache_hits"), 11);
  EXPECT_EQ(counter(*store, "disk_cache_misses"), 0);
  EXPECT_EQ(counter(*store, "requests"), 11);
  EXPECT_EQ(store->url(), "memory://origin");
  EXPECT_FALSE(store->is_local());
}

TEST_F(DiskCache, MetadataNeedsOneRoundTrip) {
  fill();
  const auto store = mount();
  EXPECT_EQ(store->size("zarr.json"), 2);
  EXPECT_EQ(read(*store, "zarr.json"), "{}");
  EXPECT_EQ(origin->requests, 1);
  EXPECT_EQ(store->size("t/c/0"), 5000);
  EXPECT_EQ(origin->requests, 2);
  read(*store, "t/c/1");
  EXPECT_EQ(origin->requests, 3);
}

TEST_F(DiskCache, AnObjectThatAppearsWhileItIsAskedForIsNotStale) {
  const auto store = mount();
  origin->before_missing = [&] {
    origin->set("new", "0123456789", "n1");
    EXPECT_EQ(read(*store, "new"), "0123456789");
  };
  EXPECT_EQ(read(*store, "new", {0, 4}), "0123");
}

// Never missing, which would become fill values: this mount has seen the object.
TEST_F(DiskCache, AnObjectThatAppearsAndGoesWhileItIsAskedForIsTakenFromTheCache) {
  options.wait_for_disk = true;  // cached before it is answered
  EXPECT_EQ(appear_and_go(*mount()), "0123");
}

TEST_F(DiskCache, AnObjectThatAppearsAndGoesWhileItIsAskedForIsStaleWhereItWasNotKept) {
  options.queue = 0;  // nothing is cached
  EXPECT_EQ(error_of([&] { appear_and_go(*mount()); }), ErrorCode::stale);
}

TEST_F(DiskCache, RangesAreKept) {
  const std::string all = content(3, 5000);
  const auto check = [&](Store& store) {
    EXPECT_EQ(read(store, "t/c/3", {100, 200}), all.substr(100, 200));
    EXPECT_EQ(read(store, "t/c/3", {4900, 200}), all.substr(4900));
    EXPECT_EQ(read(store, "t/c/3", {9000, 10}), "");
    EXPECT_EQ(read(store, "t/c/3", {0, 16, true}), all.substr(4984));
    std::string out(50, ' ');
    const auto part = store.read_into("t/c/3", 4970, std::as_writable_bytes(std::span(out)));
    ASSERT_TRUE(part);
    EXPECT_EQ(part->bytes, 30);
    EXPECT_EQ(part->object_size, 5000);
    EXPECT_EQ(out, all.substr(4970) + std::string(20, ' '));
  };
  check(*mount());
  EXPECT_EQ(origin->requests, 5);
  const auto store = mount();
  check(*store);
  EXPECT_EQ(origin->requests, 1);
  EXPECT_EQ(origin->sent, 0);
  read(*store, "t/c/4");
}

TEST_F(DiskCache, ARangeOfAKeptObjectIsTakenFromIt) {
  fill();
  const auto store = mount();
  const std::string all = content(3, 5000);
  EXPECT_EQ(read(*store, "t/c/3", {100, 200}), all.substr(100, 200));
  EXPECT_EQ(read(*store, "t/c/3", {0, 16, true}), all.substr(4984));
  EXPECT_EQ(read(*store, "t/c/3", {4990, UINT64_MAX}), all.substr(4990));
  EXPECT_EQ(read(*store, "t/c/3", {7000, 1}), "");
  EXPECT_EQ(origin->requests, 1);
  EXPECT_EQ(origin->sent, 0);
}

TEST_F(DiskCache, AnObjectThatChangedBetweenMountsIsReadAnew) {
  fill();
  origin->set("t/c/3", content(33, 6000), "new");
  origin->set("zarr.json", "[]", "m2");
  {
    const auto store = mount();
    EXPECT_EQ(read(*store, "zarr.json"), "[]");
    EXPECT_EQ(read(*store, "t/c/3", {10, 20}), content(33, 6000).substr(10, 20));
    EXPECT_EQ(read(*store, "t/c/3"), content(33, 6000));
    EXPECT_EQ(read(*store, "t/c/3", {10, 21}), content(33, 6000).substr(10, 21));
  }
  const auto store = mount();
  EXPECT_EQ(read(*store, "t/c/3"), content(33, 6000));
  EXPECT_EQ(read(*store, "zarr.json"), "[]");
  EXPECT_EQ(origin->sent, 0);
}

TEST_F(DiskCache, AnObjectThatChangesDuringTheMountIsStale) {
  const auto store = mount();
  read(*store, "t/c/3", {0, 10});
  origin->set("t/c/3", content(33, 6000), "new");
  EXPECT_EQ(error_of([&] { read(*store, "t/c/3", {10, 10}); }), ErrorCode::stale);
  read(*store, "t/c/4", {0, 10});
  origin->remove("t/c/4");
  EXPECT_EQ(error_of([&] { read(*store, "t/c/4", {10, 10}); }), ErrorCode::stale);
}

TEST_F(DiskCache, MissingIsNeverKept) {
  {
    const auto store = mount();
    EXPECT_EQ(read(*store, "t/c/77"), std::nullopt);
    origin->set("t/c/77", "here now", "v");
    EXPECT_EQ(read(*store, "t/c/77"), "here now");
  }
  origin->remove("t/c/77");
  EXPECT_EQ(read(*mount(), "t/c/77"), std::nullopt);
  EXPECT_EQ(mount()->size("zarr.jsonx/zarr.json"), std::nullopt);
}

TEST_F(DiskCache, WhatHasNoVersionIsNotKept) {
  origin->set("t/c/0", "bytes", "");
  EXPECT_EQ(read(*mount(), "t/c/0"), "bytes");
  EXPECT_EQ(read(*mount(), "t/c/0"), "bytes");
  EXPECT_EQ(origin->sent, 5);
}

TEST_F(DiskCache, TrustAsksAboutMetadataOnly) {
  fill();
  options.trust = true;
  const auto store = mount();
  EXPECT_EQ(read(*store, "zarr.json"), "{}");
  EXPECT_EQ(read(*store, "t/c/5"), content(5, 5000));
  EXPECT_EQ(origin->requests, 1);
}

TEST_F(DiskCache, TrustAsksAboutSetsAndBranches) {
  options.trust = true;
  for (const char* key : {"set.json", "repo", "refs/branch.main/ref.json"}) {
    origin->set(key, "old", "1");
    EXPECT_EQ(read(*mount(), key), "old");
    origin->set(key, "new", "2");
    EXPECT_EQ(read(*mount(), key), "new") << key;
  }
}

TEST_F(DiskCache, WhatIsTrustedHasOneVersion) {
  fill();
  options.trust = true;
  const auto store = mount();
  EXPECT_EQ(read(*store, "t/c/5", {0, 10}), content(5, 5000).substr(0, 10));
  origin->set("t/c/5", content(55, 5000), "new");
  std::filesystem::remove_all(directory / "c");  // evicted
  EXPECT_EQ(error_of([&] { read(*store, "t/c/5", {10, 10}); }), ErrorCode::stale);
}

TEST_F(DiskCache, WhatIsGoneFromTheServerIsServedAsLongAsItIsKept) {
  fill();
  const auto store = mount();
  EXPECT_EQ(read(*store, "t/c/5"), content(5, 5000));
  origin->remove("t/c/5");
  EXPECT_EQ(read(*store, "t/c/5"), content(5, 5000));
  std::filesystem::remove_all(directory / "c");
  EXPECT_EQ(error_of([&] { read(*store, "t/c/5"); }), ErrorCode::stale);
}

TEST_F(DiskCache, WhatCannotBeWhatWasStoredIsReplaced) {
  // A cache between the origin and this one returned a truncated object, with the object's version.
  const std::string whole = content(5, 5000);
  origin->set("t/c/5", whole.substr(0, 100), "c5");
  options.wait_for_disk = true;
  {
    const auto store = mount();
    EXPECT_EQ(read(*store, "t/c/5"), whole.substr(0, 100));
    origin->set("t/c/5", whole, "c5");
    EXPECT_EQ(read(*store, "t/c/5"), whole.substr(0, 100)) << "it is kept";
    const auto again = awaited<ReadOutcome>(
        [&](ReadDone done) { read_past_caches(*store, "t/c/5", {}, std::move(done)); });
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(again->data()), again->size()), whole);
  }
  EXPECT_EQ(read(*mount(), "t/c/5"), whole);
}

TEST_F(DiskCache, StoresAreToldApart) {
  fill();
  options.realm = "https://another.endpoint";
  const auto store = mount();
  read(*store, "t/c/5");
  EXPECT_EQ(origin->sent, 5000);
}

TEST_F(DiskCache, FailuresAreFailures) {
  fill();
  const auto store = mount();
  read(*store, "t/c/5");
  origin->fail = true;
  EXPECT_EQ(read(*store, "t/c/5"), content(5, 5000));
  EXPECT_EQ(error_of([&] { read(*store, "t/c/6"); }), ErrorCode::io);
  EXPECT_EQ(error_of([&] { read(*store, "../x"); }), ErrorCode::invalid_argument);
  origin->fail = false;
  EXPECT_EQ(read(*store, "t/c/6"), content(6, 5000));
}

TEST_F(DiskCache, DamagedFilesAreFetchedAgain) {
  fill();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path()))
    if (entry.is_regular_file() && entry.file_size() > 600)
      std::filesystem::resize_file(entry, 1000);
  {
    const auto store = mount();
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(read(*store, "t/c/" + std::to_string(i)), content(i, 5000));
    EXPECT_EQ(counter(*store, "disk_cache_damaged"), 10);
  }
  const auto store = mount();
  EXPECT_EQ(read(*store, "t/c/5"), content(5, 5000));
  EXPECT_EQ(origin->sent, 0);
}

TEST_F(DiskCache, AFullDiskEndsKeepingWithOneLine) {
  std::mutex mutex;
  std::vector<std::string> lines;
  options.warn = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
  };
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  {
    const auto store = mount();
    read(*store, "zarr.json");
    const rlimit small{3000, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    for (int round = 0; round < 3; ++round)
      for (int i = 0; i < 10; ++i)
        EXPECT_EQ(read(*store, "t/c/" + std::to_string(i)), content(i, 5000));
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  ASSERT_EQ(lines.size(), 1);
  EXPECT_NE(lines[0].find("the cache directory cannot be used: File too large"), std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find(directory.path().string()), std::string::npos);
  const auto store = mount();
  EXPECT_EQ(read(*store, "t/c/5"), content(5, 5000));
  EXPECT_EQ(origin->sent, 5000);
}

TEST_F(DiskCache, ReadersDoNotWaitForTheDisk) {
  options.queue = 4000;  // less than a chunk
  const auto store = mount();
  EXPECT_EQ(read(*store, "t/c/5"), content(5, 5000));
  EXPECT_EQ(counter(*store, "disk_cache_not_kept"), 1);
  EXPECT_EQ(read(*mount(), "t/c/5"), content(5, 5000));
  EXPECT_EQ(origin->sent, 5000);
}

TEST_F(DiskCache, FillingWaitsForTheDisk) {
  options.queue = 0;
  options.wait_for_disk = true;
  const auto filling = mount();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(read(*filling, "t/c/" + std::to_string(i)), content(i, 5000));
  EXPECT_EQ(counter(*filling, "disk_cache_bytes_written"), 50000);
  const auto reading = mount();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(read(*reading, "t/c/" + std::to_string(i)), content(i, 5000));
  EXPECT_EQ(origin->sent, 0);
}

TEST_F(DiskCache, TheLimitHolds) {
  options.limit = 5 * 8192;
  fill();
  std::uintmax_t total = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path()))
    if (entry.is_regular_file()) total += entry.file_size();
  EXPECT_LE(total, options.limit);
  EXPECT_GT(total, options.limit / 2);
  const auto store = mount();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(read(*store, "t/c/" + std::to_string(i)), content(i, 5000));
}

/// Runs `body` in another process, which exits with its result.
template <class Body>
pid_t in_process(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  return child;
}

TEST_F(DiskCache, SeveralProcessesShareIt) {
  options.limit = 8 * 8192;
  std::vector<pid_t> children;
  for (int p = 0; p < 4; ++p) {
    children.push_back(in_process([&] {
      bool right = true;
      for (int round = 0; round < 10; ++round) {
        const auto store = mount();
        for (int i = 0; i < 10; ++i)
          right = right && read(*store, "t/c/" + std::to_string((i * (p + 3)) % 10)) ==
                               content((i * (p + 3)) % 10, 5000);
        right = right && counter(*store, "disk_cache_damaged") == 0;
      }
      return right;
    }));
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(DiskCache, AKilledProcessLeavesNothingWrong) {
  for (int i = 0; i < 10; ++i) origin->set("big/" + std::to_string(i), content(i, 2000000), "v");
  for (int round = 0; round < 10; ++round) {
    const pid_t child = in_process([&] {
      for (int i = 0;; ++i) {
        const auto store = mount();
        for (int k = 0; k < 10; ++k)
          read(*store, "big/" + std::to_string(k), {static_cast<std::uint64_t>(i), 2000000});
      }
      return true;
    });
    ::usleep(static_cast<useconds_t>(3000 + round * 2777));
    ::kill(child, SIGKILL);
    int status = -1;
    ::waitpid(child, &status, 0);
    const auto store = mount();
    for (int k = 0; k < 10; ++k) {
      const std::string key = "big/" + std::to_string(k);
      ASSERT_EQ(read(*store, key), content(k, 2000000));
      ASSERT_EQ(read(*store, key, {1, 2000000}), content(k, 2000000).substr(1));
    }
  }
}

TEST_F(DiskCache, ReadsAtOnce) {
  options.limit = 8 * 8192;
  const auto store = mount();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const int n = (i * 3 + t) % 10;
        if (read(*store, "t/c/" + std::to_string(n)) != content(n, 5000)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace disk_cache_test
}  // namespace batchfs
