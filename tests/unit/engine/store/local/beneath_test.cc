#include "engine/store/local/beneath.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "engine/base/error.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace beneath_test {

/// By the kernel and by hand: both resolve alike.
class BeneathTest : public testing::TestWithParam<Beneath::Resolver> {
 protected:
  BeneathTest() {
    write("store/file", "file");
    write("store/a/b/deep", "deep");
    write("outside/secret", "secret");
  }
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = directory_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void link(const std::string& target, const std::string& at) {
    std::filesystem::create_symlink(target, directory_.path() / "store" / at);
  }
  Beneath beneath(Beneath::Links links = Beneath::Links::inside) {
    return {directory_.path() / "store", links, GetParam()};
  }
  /// Its text, the errno, or the link that leads outside.
  static std::string outcome(const Beneath& beneath, const std::string& path,
                             int flags = O_RDONLY) {
    try {
      const Descriptor opened = beneath.open(path, flags);
      if (opened.get() < 0) return std::to_string(errno);
      struct stat status {};
      EXPECT_EQ(::fstat(opened.get(), &status), 0);
      if (S_ISDIR(status.st_mode)) return "directory";
      if ((flags & O_PATH) != 0) return S_ISREG(status.st_mode) ? "path" : "other";
      std::string text(static_cast<std::size_t>(status.st_size), '\0');
      EXPECT_EQ(::read(opened.get(), text.data(), text.size()), status.st_size);
      return text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::access_denied);
      EXPECT_EQ(error.where(), beneath.root());
      const std::string& why = error.why();
      const std::size_t begin = why.find('\'') + 1;
      return "outside: " + why.substr(begin, why.find('\'', begin) - begin);
    }
  }
  static std::string number(int error) { return std::to_string(error); }

  TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Resolvers, BeneathTest,
                         testing::Values(Beneath::Resolver::automatic, Beneath::Resolver::by_hand),
                         [](const auto& each) {
                           return each.param == Beneath::Resolver::automatic ? "Kernel" : "ByHand";
                         });

TEST_P(BeneathTest, OpensWhatIsThere) {
  const Beneath store = beneath();
  EXPECT_EQ(outcome(store, "file"), "file");
  EXPECT_EQ(outcome(store, "a/b/deep"), "deep");
  EXPECT_EQ(outcome(store, "."), "directory");
  EXPECT_EQ(outcome(store, "a", O_RDONLY | O_DIRECTORY), "directory");
  EXPECT_EQ(outcome(store, "a/b", O_PATH), "directory");
  EXPECT_EQ(outcome(store, "file", O_PATH), "path");
}

TEST_P(BeneathTest, SaysWhyItCannotOpen) {
  link("loop", "loop");
  link("nowhere", "dangling");
  const Beneath store = beneath();
  EXPECT_EQ(outcome(store, "none"), number(ENOENT));
  EXPECT_EQ(outcome(store, "a/none/deep"), number(ENOENT));
  EXPECT_EQ(outcome(store, "file/below"), number(ENOTDIR));
  EXPECT_EQ(outcome(store, "file", O_RDONLY | O_DIRECTORY), number(ENOTDIR));
  EXPECT_EQ(outcome(store, "loop"), number(ELOOP));
  EXPECT_EQ(outcome(store, "loop/below"), number(ELOOP));
  EXPECT_EQ(outcome(store, "dangling"), number(ENOENT));
  EXPECT_EQ(outcome(store, std::string(300, 'n')), number(ENAMETOOLONG));
}

TEST_P(BeneathTest, FollowsLinksThatStayInside) {
  link("file", "to-file");
  link("a", "to-directory");
  link("../../file", "a/b/up");
  link("to-directory/./b//up", "chain");
  link("../..", "a/b/root");
  const Beneath store = beneath();
  EXPECT_EQ(outcome(store, "to-file"), "file");
  EXPECT_EQ(outcome(store, "to-file", O_PATH), "path");
  EXPECT_EQ(outcome(store, "to-directory/b/deep"), "deep");
  EXPECT_EQ(outcome(store, "to-directory", O_RDONLY | O_DIRECTORY), "directory");
  EXPECT_EQ(outcome(store, "a/b/up"), "file");
  EXPECT_EQ(outcome(store, "chain"), "file");
  EXPECT_EQ(outcome(store, "a/b/root/file"), "file");
  EXPECT_EQ(outcome(store, "a/b/root"), "directory");
}

TEST_P(BeneathTest, NamesTheLinkThatLeadsOutside) {
  link("../outside/secret", "up");
  link((directory_.path() / "outside").string(), "absolute");
  link("..", "parent");
  link("../../../outside", "a/b/deeper");
  link("a/b/deeper", "chain");
  link("../store/file",
       "and-back");  // the kernel refuses it as well: the root's name may change
  const Beneath store = beneath();
  EXPECT_EQ(outcome(store, "up"), "outside: up");
  EXPECT_EQ(outcome(store, "up", O_PATH), "outside: up");
  EXPECT_EQ(outcome(store, "absolute/secret"), "outside: absolute");
  EXPECT_EQ(outcome(store, "absolute/none"), "outside: absolute");
  EXPECT_EQ(outcome(store, "parent"), "outside: parent");
  EXPECT_EQ(outcome(store, "a/b/deeper/secret"), "outside: a/b/deeper");
  EXPECT_EQ(outcome(store, "chain/secret"), "outside: a/b/deeper");
  EXPECT_EQ(outcome(store, "and-back"), "outside: and-back");
}

TEST_P(BeneathTest, FollowsLinksAnywhereIfToldTo) {
  link("../outside/secret", "up");
  link((directory_.path() / "outside").string(), "absolute");
  const Beneath store = beneath(Beneath::Links::anywhere);
  EXPECT_EQ(outcome(store, "up"), "secret");
  EXPECT_EQ(outcome(store, "absolute/secret"), "secret");
}

TEST_P(BeneathTest, TheRootMayBeALink) {
  std::filesystem::create_directory_symlink(directory_.path() / "store",
                                            directory_.path() / "link");
  EXPECT_EQ(
      outcome(Beneath(directory_.path() / "link", Beneath::Links::inside, GetParam()), "a/b/deep"),
      "deep");
}

TEST_P(BeneathTest, ARootThatIsNotThereHasNoDescriptor) {
  const Beneath none(directory_.path() / "none", Beneath::Links::inside, GetParam());
  EXPECT_EQ(none.descriptor(), -1);
}

TEST_P(BeneathTest, ManyLinksOfOnePathAreTooMany) {
  link("file", "link0");
  for (int i = 1; i < 50; ++i) link("link" + std::to_string(i - 1), "link" + std::to_string(i));
  EXPECT_EQ(outcome(beneath(), "link39"), "file");
  EXPECT_EQ(outcome(beneath(), "link40"), number(ELOOP));
}

}  // namespace beneath_test
}  // namespace batchfs
