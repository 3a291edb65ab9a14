#include "tools/cli/whole_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "engine/base/descriptor.h"
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

TEST_F(WholeFileTest, ALinkStaysALink) {
  write_whole_file(folder / "a", "one");
  std::filesystem::create_symlink("a", folder / "link");
  write_whole_file(folder / "link", "two");
  EXPECT_EQ(content("a"), "two");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(files(), 2u);
  std::filesystem::create_symlink("new", folder / "to-new");
  write_whole_file(folder / "to-new", "three");
  EXPECT_EQ(content("new"), "three");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "to-new"));
}

TEST_F(WholeFileTest, AFileKeepsItsMode) {
  using std::filesystem::perms;
  write_whole_file(folder / "a", "one");
  std::filesystem::permissions(folder / "a", perms::owner_read | perms::owner_write);
  write_whole_file(folder / "a", "two");
  EXPECT_EQ(std::filesystem::status(folder / "a").permissions(),
            perms::owner_read | perms::owner_write);
}

TEST_F(WholeFileTest, DevicesAndPipesAreWrittenTo) {
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Descriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  write_whole_file(pipe, "text");
  char bytes[8];
  EXPECT_EQ(::read(reader.get(), bytes, sizeof bytes), 4);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(files(), 1u);
  // Through a link, so that a failure of this test cannot remove the device.
  std::filesystem::create_symlink("/dev/full", folder / "full");
  EXPECT_THROW(write_whole_file(folder / "full", "text"), Error);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "full"));
  EXPECT_EQ(files(), 2u);
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
