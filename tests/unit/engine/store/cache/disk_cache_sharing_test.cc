// The disk cache where its directory is damaged, full, or used by several processes at once.

#include <csignal>
#include <thread>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/engine/store/cache/cached_origin.h"

namespace batchfs {
namespace disk_cache_sharing_test {

using namespace cached_origin;
using DiskCacheSharing = CachedOrigin;

TEST_F(DiskCacheSharing, DamagedFilesAreFetchedAgain) {
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

TEST_F(DiskCacheSharing, AFullDiskEndsKeepingWithOneLine) {
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

TEST_F(DiskCacheSharing, ReadersDoNotWaitForTheDisk) {
  options.queue = 4000;  // less than a chunk
  const auto store = mount();
  EXPECT_EQ(read(*store, "t/c/5"), content(5, 5000));
  EXPECT_EQ(counter(*store, "disk_cache_not_kept"), 1);
  EXPECT_EQ(read(*mount(), "t/c/5"), content(5, 5000));
  EXPECT_EQ(origin->sent, 5000);
}

TEST_F(DiskCacheSharing, FillingWaitsForTheDisk) {
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

TEST_F(DiskCacheSharing, TheLimitHolds) {
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

TEST_F(DiskCacheSharing, SeveralProcessesShareIt) {
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

TEST_F(DiskCacheSharing, AKilledProcessLeavesNothingWrong) {
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

TEST_F(DiskCacheSharing, ReadsAtOnce) {
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

}  // namespace disk_cache_sharing_test
}  // namespace batchfs
