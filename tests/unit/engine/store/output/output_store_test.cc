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

}  // namespace output_store_test
}  // namespace batchfs
