#include "tools/cli/whole_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace whole_file_test {

struct WholeFileTest : testing::Test {
  WholeFileTest() { std::filesystem::create_directories(folder); }
  ~WholeFileTest() override { std::filesystem::remove_all(folder); }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("batchfs-whole-file-" + std::to_string(::getpid()));

  std::string content(const std::string& name) const {
    std::ifstream file(folder / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }
};

TEST_F(WholeFileTest, ReplacesWhatWasThereAndLeavesNothingBeside) {
  write_whole_file(folder / "a", "one");
  write_whole_file(folder / "a", std::string("two\0three", 9));
  EXPECT_EQ(content("a"), std::string("two\0three", 9));
  EXPECT_EQ(files(), 1u);
}

TEST_F(WholeFileTest, AFailureKeepsTheOldFile) {
  std::filesystem::create_directory(folder / "directory");
  EXPECT_THROW(write_whole_file(folder / "directory", "text"), Error);
  EXPECT_TRUE(std::filesystem::is_directory(folder / "directory"));
  EXPECT_EQ(files(), 1u);
  EXPECT_THROW(write_whole_file(folder / "missing" / "a", "text"), Error);
}

}  // namespace whole_file_test
}  // namespace batchfs
