#include "engine/store/output/apart.h"

#include <filesystem>

#include <sys/mount.h>

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace apart_test {

namespace fs = std::filesystem;

std::string why_not(const std::vector<std::string>& stores, const std::string& place) {
  try {
    check_apart(stores, place);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.why();
  }
  return "";
}

TEST(Apart, AnOutputLiesBesideItsStore) {
  const TemporaryDirectory folder;
  const std::string store = folder / "s.zarr";
  fs::create_directories(store + "/t2m");
  fs::create_directory_symlink(store, folder / "link");
  const auto refused = [&](const std::string& output) { return !why_not({store}, output).empty(); };
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
  EXPECT_FALSE(why_not({"s3://b/x"}, "s3://b/x/y").empty());
  EXPECT_EQ(why_not({"s3://b/x"}, "s3://b/xy"), "");
}

TEST(Apart, EachStoreCounts) {
  const TemporaryDirectory folder;
  fs::create_directories(folder / "a");
  fs::create_directories(folder / "b");
  EXPECT_EQ(why_not({folder / "a", folder / "b"}, folder / "b/x"),
            "the output lies in the store that is read; name a place beside it");
  EXPECT_EQ(why_not({folder / "a", folder / "b"}, folder / "a"),
            "the output is the store itself; name another place");
  EXPECT_EQ(why_not({folder / "a", folder / "b"}, folder / "c"), "");
}

TEST(Apart, ACacheMayLieAroundAStore) {
  const TemporaryDirectory folder;
  fs::create_directories(folder / "a");
  EXPECT_NO_THROW(check_outside({folder / "a"}, folder.path().string(), "cache"));
  try {
    check_outside({folder / "a"}, folder / "a/x", "cache");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.why(), "the cache lies in the store that is read; name a place beside it");
  }
}

/// A folder that is mounted at a second place.
class Bound {
 public:
  Bound(const std::string& folder, const std::string& at) : at_(at) {
    fs::create_directories(at);
    is_there_ = ::mount(folder.c_str(), at.c_str(), nullptr, MS_BIND, nullptr) == 0;
  }
  ~Bound() {
    if (is_there_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;
  bool is_there() const { return is_there_; }

 private:
  const std::string at_;
  bool is_there_;
};

TEST(Apart, ABindMountOfTheStoreIsTheStore) {
  const TemporaryDirectory folder;
  const std::string store = folder / "data/a b.zarr";
  fs::create_directories(store + "/t2m/c");
  fs::create_directories(folder / "other");
  const Bound whole(store, folder / "whole"), part(store + "/t2m", folder / "part"),
      above(folder / "data", folder / "above");
  if (!whole.is_there() || !part.is_there() || !above.is_there())
    GTEST_SKIP() << "needs the right to mount";
  constexpr const char* kIn = "the output lies in the store that is read; name a place beside it";
  EXPECT_EQ(why_not({store}, folder / "whole"),
            "the output is the store itself; name another place");
  EXPECT_EQ(why_not({store}, folder / "whole/new"), kIn);
  EXPECT_EQ(why_not({store}, folder / "part"), kIn);
  EXPECT_EQ(why_not({store}, folder / "part/c/new"), kIn);
  EXPECT_EQ(why_not({store}, folder / "above"),
            "the store that is read lies in the output; name a place beside it");
  EXPECT_EQ(why_not({folder / "whole"}, store + "/new"), kIn);
  EXPECT_EQ(why_not({folder / "above/a b.zarr"}, folder / "part/new"), kIn);
  EXPECT_EQ(why_not({store}, folder / "above/b.zarr"), "");
  EXPECT_EQ(why_not({store}, folder / "other"), "");
}

}  // namespace apart_test
}  // namespace batchfs
