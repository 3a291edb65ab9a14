#include "engine/store/output/output_store.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace output_store_test {

namespace fs = std::filesystem;

std::string why_not(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.why();
  }
  return "";
}

TEST(OutputStore, PlacesAreOpenedByTheirScheme) {
  const TemporaryDirectory folder;
  EXPECT_EQ(open_output(folder / "a//", {})->url(), folder / "a");
  EXPECT_EQ(open_output("file://" + folder / "a", {})->url(), folder / "a");
  EXPECT_TRUE(open_output(folder / "a", {})->is_local());
  EXPECT_FALSE(fs::exists(folder / "a"));
  std::ofstream(folder / "file") << "mine";
  EXPECT_NE(why_not([&] { open_output(folder / "file", {}); }).find("this is a file"),
            std::string::npos);
  EXPECT_NE(why_not([&] { open_output(folder / "a.zip", {}); }).find("archives"),
            std::string::npos);
  EXPECT_NE(
      why_not([&] { open_output("https://example.org/x", {}); }).find("https:// cannot be written"),
      std::string::npos);
  EXPECT_NE(why_not([&] { open_output("file://", {}); }).find("no name"), std::string::npos);
}

TEST(OutputStore, SignaturesAreNotShown) {
  EXPECT_EQ(shown_output("az://account/container/x?sig=secret"), "az://account/container/x");
  EXPECT_EQ(shown_output("abfss://c@a.dfs.core.windows.net/x?sig=secret"),
            "abfss://c@a.dfs.core.windows.net/x");
  EXPECT_EQ(shown_output("/data/what?"), "/data/what?");  // a name
}

TEST(OutputStore, AnOutputLiesBesideItsStore) {
  const TemporaryDirectory folder;
  const std::string store = folder / "s.zarr";
  fs::create_directories(store + "/t2m");
  fs::create_directory_symlink(store, folder / "link");
  const auto refused = [&](const std::string& output) {
    return !why_not([&] { check_output_apart(store, output); }).empty();
  };
  EXPECT_TRUE(refused(store));
  EXPECT_TRUE(refused(store + "/"));
  EXPECT_TRUE(refused("file://" + store));
  EXPECT_TRUE(refused(store + "/new"));
  EXPECT_TRUE(refused(store + "/t2m/../x"));
  EXPECT_TRUE(refused(folder / "link/x"));
  EXPECT_TRUE(refused(folder.path().string()));
  EXPECT_FALSE(refused(folder / "s.zarr2"));
  EXPECT_FALSE(refused(folder / "out"));
  EXPECT_FALSE(refused(store + "/../out"));
  EXPECT_FALSE(why_not([] { check_output_apart("s3://b/x", "s3://b/x/y"); }).empty());
  EXPECT_TRUE(why_not([] { check_output_apart("s3://b/x", "s3://b/xy"); }).empty());
}

}  // namespace output_store_test
}  // namespace batchfs
