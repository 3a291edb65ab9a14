#include "engine/store/cache/cache_writer.h"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace cache_writer_test {

constexpr std::uint64_t kMuch = 1 << 20;

Buffer bytes_of(const std::string& text) {
  Buffer bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::string text_of(const Buffer& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string text_of(const ReadOutcome& outcome) {
  if (!std::holds_alternative<std::optional<Buffer>>(outcome)) return "an error";
  const auto& bytes = std::get<std::optional<Buffer>>(outcome);
  return bytes ? text_of(*bytes) : "missing";
}

class CacheWriterTest : public testing::Test {
 protected:
  std::optional<std::string> kept(const std::string& name) {
    const auto entry = files_.get(CacheFiles::name_of(name));
    return entry ? std::optional(text_of(entry->bytes)) : std::nullopt;
  }
  /// The bytes that the reader got before write() returned; nullopt: none so far.
  static std::optional<std::string> write(CacheWriter& writer, const std::string& name,
                                          const std::string& text) {
    const auto got = std::make_shared<std::optional<std::string>>();
    writer.write(CacheFiles::name_of(name), {"v", text.size()}, bytes_of(text),
                 [got](ReadOutcome outcome) { *got = text_of(outcome); });
    return *got;
  }
  /// From now on nothing can be written.
  void break_disk() {
    std::filesystem::remove_all(directory_ / "c");
    std::ofstream(directory_ / "c") << "in the way";
  }

  const TemporaryDirectory directory_;
  CacheFiles files_{directory_ / "c", {}};
};

TEST_F(CacheWriterTest, ReadersAreServedAtOnceAndACopyIsKept) {
  {
    CacheWriter writer(files_, {.queue = kMuch, .wait_for_disk = false, .warn = {}});
    for (int i = 0; i < 50; ++i)
      EXPECT_EQ(write(writer, std::to_string(i), "chunk " + std::to_string(i)),
                "chunk " + std::to_string(i));
    EXPECT_EQ(write(writer, "empty", ""), "");
  }  // the destructor writes the queue
  for (int i = 0; i < 50; ++i) EXPECT_EQ(kept(std::to_string(i)), "chunk " + std::to_string(i));
  EXPECT_EQ(kept("empty"), "");
  EXPECT_EQ(files_.get(CacheFiles::name_of("7"))->version.text, "v");
}

TEST_F(CacheWriterTest, WhoWaitsForTheDiskIsServedWhenItIsThere) {
  CacheWriter writer(
      files_, {.queue = 0, .wait_for_disk = true, .warn = {}});  // then the queue has no limit
  std::promise<std::optional<std::string>> promise;
  writer.write(CacheFiles::name_of("a"), {"v", 5}, bytes_of("bytes"), [&](ReadOutcome outcome) {
    EXPECT_EQ(text_of(outcome), "bytes");
    promise.set_value(kept("a"));
  });
  EXPECT_EQ(promise.get_future().get(), "bytes");
  EXPECT_EQ(writer.counters().bytes, 5u);
  EXPECT_EQ(writer.counters().dropped, 0u);
}

TEST_F(CacheWriterTest, WhatIsTooMuchIsNotKeptAndItsReaderDoesNotNotice) {
  CacheWriter writer(files_, {.queue = 10, .wait_for_disk = false, .warn = {}});
  EXPECT_EQ(write(writer, "large", "eleven bytes"), "eleven bytes");
  EXPECT_EQ(writer.counters().dropped, 1u);
  EXPECT_EQ(writer.counters().bytes, 0u);
  EXPECT_EQ(write(writer, "small", "bytes"), "bytes");
  while (writer.counters().bytes < 5) std::this_thread::yield();
  EXPECT_EQ(kept("large"), std::nullopt);
  EXPECT_EQ(kept("small"), "bytes");
}

TEST_F(CacheWriterTest, ABrokenDiskIsToldOnceAndStopsNobody) {
  std::atomic<int> warnings{0};
  std::string warning;
  for (const bool wait : {false, true}) {
    warnings = 0;
    CacheWriter writer(
        files_, {.queue = kMuch, .wait_for_disk = wait, .warn = [&](const std::string& line) {
                   warning = line;
                   ++warnings;
                 }});
    break_disk();
    std::atomic<int> served{0};
    for (int i = 0; i < 20; ++i)
      writer.write(CacheFiles::name_of(std::to_string(i)), {"v", 5}, bytes_of("bytes"),
                   [&](ReadOutcome outcome) {
                     EXPECT_EQ(text_of(outcome), "bytes");
                     ++served;
                   });
    while (served < 20 || writer.counters().dropped < 20) std::this_thread::yield();
    EXPECT_EQ(warnings, 1);
    EXPECT_NE(warning.find("nothing more is kept in it"), std::string::npos);
    EXPECT_EQ(writer.counters().bytes, 0u);
    EXPECT_EQ(write(writer, "later", "bytes"), "bytes") << "at once: nothing is written any more";
  }
}

TEST_F(CacheWriterTest, FromManyThreads) {
  {
    CacheWriter writer(files_, {.queue = kMuch, .wait_for_disk = false, .warn = {}});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&writer, t] {
        for (int i = 0; i < 50; ++i)
          write(writer, std::to_string(t * 50 + i), std::string(100, static_cast<char>('a' + t)));
      });
    for (std::thread& thread : threads) thread.join();
  }
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(kept(std::to_string(i)), std::string(100, static_cast<char>('a' + i / 50)));
}

}  // namespace cache_writer_test
}  // namespace batchfs
