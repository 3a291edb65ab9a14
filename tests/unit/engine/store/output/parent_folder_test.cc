#include "engine/store/output/parent_folder.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace parent_folder_test {

TEST(ParentFolder, OnlyTheLastComponentMayBeMissing) {
  const std::string folder = testing::TempDir();
  for (const std::string place : {"new", "new/", "./new", "a/../new", "/new"})
    EXPECT_NO_THROW(expect_parent_folder(place)) << place;
  EXPECT_NO_THROW(expect_parent_folder(folder + "/new"));
  EXPECT_NO_THROW(expect_parent_folder(folder + "/new/"));
  for (const std::string end : {"/none/new", "/none/new/", "/none/./new"}) try {
      expect_parent_folder(folder + end);
      FAIL() << end;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_found);
      EXPECT_NE(std::string(error.what()).find("none' does not exist; make it first"),
                std::string::npos)
          << error.what();
    }
}

TEST(ParentFolder, AFolderIsMadeOnce) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "parent_folder";
  std::filesystem::remove_all(folder);
  EXPECT_THROW(make_folder(folder / "within"), Error);
  make_folder(folder);
  make_folder(folder);
  make_folder(folder / "within");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "within"));
  std::filesystem::remove_all(folder);
}

}  // namespace parent_folder_test
}  // namespace batchfs
