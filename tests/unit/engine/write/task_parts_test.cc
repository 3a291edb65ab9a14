#include "engine/write/task_parts.h"

#include <filesystem>

#include <unistd.h>

#include <gtest/gtest.h>

namespace batchfs {
namespace task_parts_test {

class TaskPartsTest : public testing::Test {
 protected:
  TaskPartsTest() { std::filesystem::remove_all(path_); }
  ~TaskPartsTest() override { std::filesystem::remove_all(path_); }

  static Json identity(int tasks) { return {{"command", "check"}, {"tasks", tasks}}; }
  static std::string all(const TaskParts& parts) {
    std::string text;
    parts.for_each([&](int task, std::string_view result) {
      text += std::to_string(task) + ":" + std::string(result) + " ";
    });
    return text;
  }
  /// The error's text.
  template <class Call>
  static std::string refusal(Call&& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.why();
    }
    return "none";
  }

  const std::string path_ = testing::TempDir() + "task_parts-" + std::to_string(::getpid());
  const std::shared_ptr<OutputStore> output_ = open_local_output(path_);
};

TEST_F(TaskPartsTest, ResultsComeInTheOrderOfTheTasks) {
  TaskParts parts(*output_, identity(3));
  parts.claim();
  parts.put(2, "c");
  EXPECT_FALSE(parts.has(0));
  EXPECT_TRUE(parts.has(2));
  parts.put(0, std::string_view("a\n\0b", 4));
  EXPECT_EQ(refusal([&] { all(parts); }), "1 of 3 parts are missing; run --task 1");
  parts.put(1, "");
  EXPECT_EQ(all(parts), "0:a\n" + std::string(1, '\0') + "b 1: 2:c ");
}

TEST_F(TaskPartsTest, OnlySomeMissingPartsAreNamed) {
  TaskParts parts(*output_, identity(100));
  parts.claim();
  EXPECT_EQ(refusal([&] { all(parts); }),
            "100 of 100 parts are missing; run --task 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...");
}

TEST_F(TaskPartsTest, PartsOfAnotherRunAreRefused) {
  TaskParts parts(*output_, identity(2));
  parts.claim();
  EXPECT_NE(refusal([&] { TaskParts(*output_, identity(3)).claim(); }).find("\"tasks\" differs"),
            std::string::npos);
  TaskParts(*output_, {{"command", "check"}, {"tasks", 2}, {"view", "other"}}).put(0, "x");
  EXPECT_NE(refusal([&] { parts.has(0); }).find("another run"), std::string::npos);
  EXPECT_NE(refusal([&] { all(parts); }).find("another run"), std::string::npos);
}

TEST_F(TaskPartsTest, EveryDamagedPartIsRefused) {
  TaskParts parts(*output_, identity(1));
  parts.claim();
  parts.put(0, "result");
  const std::optional<Buffer> bytes = output_->get("part-000000");
  const std::string whole(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    output_->put("part-000000", whole.substr(0, size));
    EXPECT_THROW(parts.has(0), Error) << size;
  }
  std::string changed = whole;
  changed.back() ^= 1;
  output_->put("part-000000", changed);
  EXPECT_THROW(parts.has(0), Error);
  output_->put("part-000000", whole);
  EXPECT_TRUE(parts.has(0));
}

}  // namespace task_parts_test
}  // namespace batchfs
