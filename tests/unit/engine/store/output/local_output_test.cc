#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/store/output/output_store.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace local_output_test {

namespace fs = std::filesystem;

class LocalOutputTest : public testing::Test {
 protected:
  /// Reads the file like another program.
  std::string file(const std::string& key) const {
    std::ifstream in(root_ + "/" + key, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  static ErrorCode code_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorCode::internal;
  }

  const TemporaryDirectory folder_;
  const std::string root_ = folder_ / "out";
  const std::shared_ptr<OutputStore> output_ = open_local_output(root_);
};

TEST_F(LocalOutputTest, NothingIsMadeBeforeTheFirstPut) {
  EXPECT_TRUE(output_->is_empty());
  EXPECT_EQ(output_->get("a"), std::nullopt);
  EXPECT_FALSE(fs::exists(root_));
  EXPECT_TRUE(output_->is_local());
  EXPECT_EQ(output_->url(), root_);
}

TEST_F(LocalOutputTest, PartsFollowOneAnother) {
  const std::string first = "one", second, third = "three";
  const std::array parts{std::as_bytes(std::span(first)), std::as_bytes(std::span(second)),
                         std::as_bytes(std::span(third))};
  output_->put("t2m/c/0/0", parts);
  EXPECT_EQ(file("t2m/c/0/0"), "onethree");
  output_->put("t2m/c/0/0", "other");
  EXPECT_EQ(file("t2m/c/0/0"), "other");
  output_->put("empty", "");
  EXPECT_TRUE(fs::is_empty(root_ + "/empty"));
  EXPECT_FALSE(output_->is_empty());
}

TEST_F(LocalOutputTest, ObjectsAreReadWholeAndInPart) {
  output_->put("a/b", "0123456789");
  const auto whole = output_->get("a/b");
  ASSERT_TRUE(whole);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(whole->data()), whole->size()), "0123456789");
  std::array<char, 4> some{};
  output_->read_part("a/b", 3, std::as_writable_bytes(std::span(some)));
  EXPECT_EQ(std::string(some.data(), some.size()), "3456");
  const auto read = [&](const std::string& key, std::uint64_t offset) {
    return code_of(
        [&] { output_->read_part(key, offset, std::as_writable_bytes(std::span(some))); });
  };
  EXPECT_EQ(read("a/b", 7), ErrorCode::corrupt);
  EXPECT_EQ(read("a/b", 100), ErrorCode::corrupt);
  EXPECT_EQ(read("a/c", 0), ErrorCode::not_found);
  EXPECT_EQ(output_->get("a/c"), std::nullopt);
  EXPECT_EQ(output_->get("a/b/c"), std::nullopt);  // below a file
}

TEST_F(LocalOutputTest, KeysDoNotLeaveTheFolder) {
  for (const char* key : {"../x", "a/../../x", "/etc/x", ""}) {
    EXPECT_EQ(code_of([&] { output_->put(key, "x"); }), ErrorCode::invalid_argument) << key;
    EXPECT_EQ(code_of([&] { output_->get(key); }), ErrorCode::invalid_argument) << key;
    EXPECT_EQ(code_of([&] { output_->lock(key); }), ErrorCode::invalid_argument) << key;
  }
  EXPECT_FALSE(fs::exists(folder_ / "x"));
}

TEST_F(LocalOutputTest, AReaderSeesAllOfAnObjectOrTheOneBefore) {
  constexpr std::size_t kSize = 100000;
  output_->put("a", std::string(kSize, 'a'));
  std::atomic<bool> ended{false};
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i)
      output_->put("a", std::string(kSize, static_cast<char>('a' + i % 26)));
    ended = true;
  });
  do {
    const std::string text = file("a");
    ASSERT_EQ(text, std::string(kSize, text[0]));
  } while (!ended);
  writer.join();
}

TEST_F(LocalOutputTest, WhatCannotBeWrittenLeavesNothing) {
  output_->put("file", "x");
  EXPECT_THROW(output_->put("file/below", "x"), Error);
  EXPECT_EQ(file("file"), "x");
  EXPECT_TRUE(fs::is_empty(root_ + "/.batchfs/parts"));
}

TEST_F(LocalOutputTest, WorkingFilesDoNotCountAndGo) {
  output_->put(".batchfs/done-0.json", "{}");
  EXPECT_TRUE(output_->is_empty());
  output_->discard_working_files();
  EXPECT_FALSE(fs::exists(root_ + "/.batchfs"));
  EXPECT_NO_THROW(output_->discard_working_files());
}

TEST_F(LocalOutputTest, ALockRefusesOthersUntilItGoes) {
  const std::shared_ptr<OutputStore> other = open_local_output(root_);
  {
    const auto held = output_->lock("lock-0");
    ASSERT_NE(held, nullptr);
    EXPECT_EQ(other->lock("lock-0"), nullptr);
    EXPECT_NE(other->lock("lock-1"), nullptr);
  }
  EXPECT_NE(other->lock("lock-0"), nullptr);
}

}  // namespace local_output_test
}  // namespace batchfs
