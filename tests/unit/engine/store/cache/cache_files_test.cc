#include "engine/store/cache/cache_files.h"

#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace cache_files_test {

namespace fs = std::filesystem;

std::string content(int seed, std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    text[i] = static_cast<char>(i * 31 / 7 + static_cast<std::size_t>(seed) * 17);
  return text;
}

bool put(CacheFiles& files, const std::string& name, const std::string& bytes,
         const std::string& version = "v1") {
  return files.put(CacheFiles::name_of(name), {version, bytes.size()},
                   std::as_bytes(std::span(bytes)));
}

std::optional<std::string> get(CacheFiles& files, const std::string& name) {
  const auto entry = files.get(CacheFiles::name_of(name));
  if (!entry) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(entry->bytes.data()), entry->bytes.size());
}

std::vector<fs::path> files_in(const fs::path& directory) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file() && entry.path().filename().string().size() == 64)
      found.push_back(entry.path());
  return found;
}

std::uint64_t bytes_in(const fs::path& directory) {
  std::uint64_t total = 0;
  for (const fs::path& file : files_in(directory)) total += fs::file_size(file);
  return total;
}

TEST(CacheFiles, KeepsBytesAndVersion) {
  const TemporaryDirectory directory;
  {
    CacheFiles files(directory / "c", {});
    EXPECT_EQ(get(files, "a"), std::nullopt);
    EXPECT_TRUE(put(files, "a", content(1, 100000), "\"etag\""));
    EXPECT_TRUE(put(files, "empty", ""));
  }
  CacheFiles files(directory / "c", {});
  EXPECT_EQ(get(files, "a"), content(1, 100000));
  EXPECT_EQ(get(files, "empty"), "");
  const auto entry = files.get(CacheFiles::name_of("a"));
  EXPECT_EQ(entry->version.text, "\"etag\"");
  EXPECT_EQ(entry->version.object_size, 100000);
  EXPECT_FALSE(files.get(CacheFiles::name_of("a"), 99999));
  EXPECT_TRUE(put(files, "a", content(2, 5), "v2"));
  EXPECT_EQ(get(files, "a"), content(2, 5));
  const auto no_version = [](const CacheFiles::Version&) { return false; };
  EXPECT_FALSE(files.get(CacheFiles::name_of("a"), UINT64_MAX, no_version));
  EXPECT_EQ(get(files, "a"), std::nullopt);
  EXPECT_FALSE(put(files, "a", "x", std::string(401, 'v')));
}

TEST(CacheFiles, AnEntryIsFoundWithoutReadingIt) {
  const TemporaryDirectory directory;
  CacheFiles files(directory / "c", {});
  const CacheFiles::Name name = CacheFiles::name_of("a");
  EXPECT_FALSE(files.contains(name));
  EXPECT_TRUE(put(files, "a", content(1, 1000)));
  EXPECT_TRUE(files.contains(name));
  EXPECT_TRUE(files.contains(name, 1000));
  EXPECT_FALSE(files.contains(name, 999));
  EXPECT_FALSE(files.contains(CacheFiles::name_of("b")));
}

TEST(CacheFiles, AFileIsNamedByTheSha256OfWhatItIsOf) {
  const TemporaryDirectory directory;
  CacheFiles files(directory / "c", {});
  EXPECT_TRUE(put(files, "abc", "bytes"));
  EXPECT_TRUE(fs::exists(
      directory /
      "c/batchfs-1/ba/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
  EXPECT_EQ(CacheFiles::name_of("abc"), CacheFiles::name_of("abc"));
  EXPECT_NE(CacheFiles::name_of("abc"), CacheFiles::name_of("abd"));
}

TEST(CacheFiles, ATornOrChangedFileIsDropped) {
  const TemporaryDirectory directory;
  CacheFiles files(directory / "c", {});
  const std::string good = content(1, 3000);
  put(files, "a", good);
  const fs::path path = files_in(directory.path()).at(0);
  const std::size_t whole = fs::file_size(path);
  std::uint64_t damaged = 0;
  const auto expect_dropped = [&](std::size_t what) {
    EXPECT_EQ(get(files, "a"), std::nullopt) << what;
    EXPECT_FALSE(fs::exists(path)) << what;
    EXPECT_EQ(files.damaged(), ++damaged) << what;
    put(files, "a", good);
  };
  for (std::size_t size = 0; size < whole; size += 97) {
    fs::resize_file(path, size);
    expect_dropped(size);
  }
  fs::resize_file(path, whole + 1);
  expect_dropped(whole + 1);
  for (std::size_t at = 0; at < whole; at += at < 480 ? 1 : 41) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 4));
    file.close();
    expect_dropped(at);
  }
  // A file in another's place is intact, but has other contents than requested.
  put(files, "b", content(2, 10));
  for (const fs::path& other : files_in(directory.path()))
    if (other != path) fs::rename(other, path);
  expect_dropped(0);
}

// One of two readers of a damaged entry fetched and wrote it before the other removed it.
TEST(CacheFiles, AnEntryPutWhileAnOldOneIsRefusedStays) {
  const TemporaryDirectory directory;
  CacheFiles files(directory / "c", {});
  put(files, "a", content(1, 5000), "old");
  const auto replaced = [&](const CacheFiles::Version& version) {
    EXPECT_EQ(version.text, "old");
    put(files, "a", content(2, 6000), "new");
    return false;
  };
  EXPECT_FALSE(files.get(CacheFiles::name_of("a"), UINT64_MAX, replaced));
  EXPECT_EQ(get(files, "a"), content(2, 6000));
  EXPECT_EQ(files_in(directory.path()).size(), 1u);
}

TEST(CacheFiles, TheLeastRecentlyUsedGo) {
  const TemporaryDirectory directory;
  CacheFiles files(directory / "c", {.limit = 20 * 8192, .touch_after = -1});
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(put(files, std::to_string(i), content(i, 7000)));
    EXPECT_EQ(get(files, "0"), content(0, 7000)) << i;
  }
  EXPECT_EQ(files.evicted(), 0);
  EXPECT_TRUE(put(files, "more", content(99, 7000)));
  EXPECT_EQ(files.evicted(), 2);
  EXPECT_EQ(get(files, "0"), content(0, 7000));
  EXPECT_EQ(get(files, "1"), std::nullopt);
  EXPECT_EQ(get(files, "2"), std::nullopt);
  EXPECT_EQ(get(files, "3"), content(3, 7000));
  EXPECT_FALSE(put(files, "large", std::string(11 * 8192, 'x')));  // rather than half of all others
  for (int i = 0; i < 200; ++i) {
    put(files, std::to_string(i), content(i, 1000 + static_cast<std::size_t>(i) * 20));
    ASSERT_LE(bytes_in(directory.path()), 20 * 8192);
  }
}

TEST(CacheFiles, WhatOthersWroteCounts) {
  const TemporaryDirectory directory;
  CacheFiles::Options options{.limit = 20 * 8192};
  CacheFiles one(directory / "c", options), other(directory / "c", options);
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(put(i % 2 == 0 ? one : other, std::to_string(i), content(i, 7000)));
    ASSERT_LE(bytes_in(directory.path()), 20 * 8192);
  }
  // A count that is too high costs one eviction's look.
  std::ofstream(fs::path(directory / "c") / "batchfs-1" / "usage", std::ios::binary)
      << "\xff\xff\xff\xff\x7f";
  EXPECT_TRUE(put(one, "new", "bytes"));
  EXPECT_EQ(get(other, "new"), "bytes");
}

TEST(CacheFiles, ManyAtATime) {
  const TemporaryDirectory directory;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0}, right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      CacheFiles files(directory / "c", {.limit = 30 * 8192, .touch_after = 0});
      for (int i = 0; i < 400; ++i) {
        const int n = (i * 7 + t * 13) % 50;
        const std::optional<std::string> bytes = get(files, std::to_string(n));
        if (!bytes)
          put(files, std::to_string(n), content(n, 7000));
        else
          ++(*bytes == content(n, 7000) ? right : wrong);
      }
      EXPECT_EQ(files.damaged(), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(right, 0);
}

TEST(CacheFiles, IsTheOwnersAlone) {
  const TemporaryDirectory directory;
  const mode_t before = ::umask(0);
  {
    CacheFiles files(directory / "deep/er/c", {});
    put(files, "a", "bytes");
  }
  ::umask(before);
  const auto mode = [](const fs::path& path) { return fs::status(path).permissions(); };
  EXPECT_EQ(mode(directory / "deep/er/c"), fs::perms::owner_all);
  EXPECT_EQ(mode(directory / "deep/er/c/batchfs-1"), fs::perms::owner_all);
  EXPECT_EQ(mode(files_in(directory.path()).at(0)), fs::perms::owner_read | fs::perms::owner_write);

  const auto refused = [](const std::string& path) {
    try {
      CacheFiles files(path, {});
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  fs::permissions(directory / "deep/er/c/batchfs-1", fs::perms::all);
  EXPECT_EQ(refused(directory / "deep/er/c"), ErrorCode::access_denied);
  fs::create_directory(directory / "link");
  fs::create_directory_symlink(directory / "deep", directory / "link/batchfs-1");
  EXPECT_NE(refused(directory / "link"), ErrorCode::internal);
  std::ofstream(directory / "file") << "x";
  EXPECT_EQ(refused(directory / "file"), ErrorCode::io);
  if (::geteuid() != 0) {
    fs::create_directory(directory / "closed");
    fs::permissions(directory / "closed", fs::perms::owner_read);
    EXPECT_EQ(refused(directory / "closed"), ErrorCode::access_denied);
  }
}

TEST(CacheFiles, AbandonedFilesAreRemovedWhenTheyAreOld) {
  const TemporaryDirectory directory;
  { CacheFiles files(directory / "c", {}); }
  const fs::path folder = directory / "c/batchfs-1/unfinished";
  std::ofstream(folder / "old") << "x";
  std::ofstream(folder / "new") << "x";
  fs::last_write_time(folder / "old", fs::file_time_type::clock::now() - std::chrono::hours(2));
  { CacheFiles files(directory / "c", {}); }
  EXPECT_FALSE(fs::exists(folder / "old"));
  EXPECT_TRUE(fs::exists(folder / "new"));
}

}  // namespace cache_files_test
}  // namespace batchfs
