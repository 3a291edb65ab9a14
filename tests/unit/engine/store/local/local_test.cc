#include "engine/store/local/local.h"

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace local_test {

std::string text_of(const std::optional<Buffer>& bytes) {
  if (!bytes) return "(missing)";
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

template <class Body>
ErrorCode code_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

class LocalStoreTest : public testing::Test {
 protected:
  void write(const std::string& key, const std::string& text) {
    const std::filesystem::path path = directory_.path() / key;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  std::shared_ptr<Store> open() { return open_local_store(directory_.path()); }

  TemporaryDirectory directory_;
};

TEST_F(LocalStoreTest, ReadsObjectsAndRanges) {
  write("a/b", "0123456789");
  const auto store = open();
  EXPECT_TRUE(store->is_local());
  EXPECT_TRUE(store->can_list());
  EXPECT_EQ(store->url(), directory_.path().string());
  EXPECT_EQ(text_of(store->read("a/b")), "0123456789");
  EXPECT_EQ(store->size("a/b"), 10u);
  EXPECT_EQ(text_of(store->read("a/b", {2, 3})), "234");
  EXPECT_EQ(text_of(store->read("a/b", {8, 100})), "89");
  EXPECT_EQ(text_of(store->read("a/b", {10, 5})), "");
  EXPECT_EQ(text_of(store->read("a/b", {UINT64_MAX, UINT64_MAX})), "");
  EXPECT_EQ(text_of(store->read("a/b", {.length = 3, .from_end = true})), "789");
  EXPECT_EQ(text_of(store->read("a/b", {.length = 100, .from_end = true})), "0123456789");
  EXPECT_EQ(text_of(store->read("a/b", {.length = 0, .from_end = true})), "");
}

TEST_F(LocalStoreTest, ReadsIntoMemoryOfTheCaller) {
  write("a", "0123456789");
  const auto store = open();
  std::string out(4, '?');
  const auto got = store->read_into("a", 3, std::as_writable_bytes(std::span(out)));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->bytes, 4u);
  EXPECT_EQ(got->object_size, 10u);
  EXPECT_EQ(out, "3456");
  const auto end = store->read_into("a", 8, std::as_writable_bytes(std::span(out)));
  EXPECT_EQ(end->bytes, 2u);
  EXPECT_EQ(out, "8956");
  EXPECT_FALSE(store->read_into("b", 0, std::as_writable_bytes(std::span(out))));
}

TEST_F(LocalStoreTest, EmptyObjectsAreNotMissing) {
  write("empty", "");
  const auto store = open();
  ASSERT_TRUE(store->read("empty"));
  EXPECT_EQ(store->read("empty")->size(), 0u);
  EXPECT_EQ(store->size("empty"), 0u);
}

TEST_F(LocalStoreTest, WhatIsNoFileIsMissing) {
  write("a/b", "x");
  const auto store = open();
  for (const char* key : {"c", "a", "a/c", "a/b/c", "a/b/c/d"}) {
    EXPECT_FALSE(store->read(key)) << key;
    EXPECT_FALSE(store->size(key)) << key;
  }
}

TEST_F(LocalStoreTest, KeysNeverLeaveTheStore) {
  write("a/b", "x");
  std::ofstream(directory_.path().parent_path() /
                (directory_.path().filename().string() + ".outside"))
      << "secret";
  const auto store = open_local_store(directory_.path() / "a");
  for (const std::string& key :
       {std::string("../b"), std::string(".."), std::string("/etc/passwd"), std::string("b/"),
        std::string(""), std::string("./b"), std::string("x/../b"), std::string("b\0c", 3)}) {
    EXPECT_EQ(code_of([&] { store->read(key); }), ErrorCode::invalid_argument) << key;
    EXPECT_EQ(code_of([&] { store->size(key); }), ErrorCode::invalid_argument) << key;
  }
  EXPECT_EQ(code_of([&] { store->list(".."); }), ErrorCode::invalid_argument);
  std::filesystem::remove(directory_.path().parent_path() /
                          (directory_.path().filename().string() + ".outside"));
}

TEST_F(LocalStoreTest, AFailedReadIsNotMissing) {
  write("a", "x");
  const auto store = open();
  EXPECT_EQ(code_of([&] { store->read(std::string(300, 'n')); }), ErrorCode::io);
  std::filesystem::create_symlink("loop", directory_.path() / "loop");
  EXPECT_EQ(code_of([&] { store->read("loop"); }), ErrorCode::io);
  std::filesystem::create_symlink("gone", directory_.path() / "dangling");
  std::filesystem::create_symlink("a", directory_.path() / "fine");
  for (const char* key : {"dangling", "dangling/0/0"}) {
    EXPECT_EQ(code_of([&] { store->read(key); }), ErrorCode::io) << key;
    EXPECT_EQ(code_of([&] { store->size(key); }), ErrorCode::io) << key;
  }
  EXPECT_EQ(text_of(store->read("fine")), "x");
  EXPECT_FALSE(store->read("fine/0"));
  if (::geteuid() != 0) {  // root may read everything
    std::filesystem::permissions(directory_.path() / "a", std::filesystem::perms::none);
    EXPECT_EQ(code_of([&] { store->read("a"); }), ErrorCode::access_denied);
  }
}

TEST_F(LocalStoreTest, AFifoIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((directory_ / "fifo").c_str(), 0600), 0);
  const auto store = open();
  EXPECT_EQ(code_of([&] { store->read("fifo"); }), ErrorCode::io);
  EXPECT_EQ(code_of([&] { store->size("fifo"); }), ErrorCode::io);
}

TEST_F(LocalStoreTest, AHugeFileCostsWhatIsReadOfIt) {
  write("sparse", "");
  std::filesystem::resize_file(directory_.path() / "sparse", UINT64_C(1) << 40);
  const auto store = open();
  EXPECT_EQ(store->size("sparse"), UINT64_C(1) << 40);
  EXPECT_EQ(store->read("sparse", {UINT64_C(1) << 39, 16})->size(), 16u);
}

TEST_F(LocalStoreTest, ListsChildrenByName) {
  write("b/x", "");
  write("b/y/z", "");
  write("a", "");
  write(".zattrs", "");
  std::filesystem::create_directory_symlink("b", directory_.path() / "link");
  std::filesystem::create_symlink("nowhere", directory_.path() / "dangling");
  const auto store = open();
  std::vector<std::string> found;
  for (const Store::Entry& entry : store->list(""))
    found.push_back(entry.name + (entry.is_prefix ? "/" : ""));
  EXPECT_THAT(found, testing::ElementsAre(".zattrs", "a", "b/", "dangling", "link/"));
  found.clear();
  for (const Store::Entry& entry : store->list("b"))
    found.push_back(entry.name + (entry.is_prefix ? "/" : ""));
  EXPECT_THAT(found, testing::ElementsAre("x", "y/"));
  EXPECT_TRUE(store->list("a").empty());
  EXPECT_TRUE(store->list("nothing").empty());
}

TEST_F(LocalStoreTest, LinksThatLeadInACircleAreNotFollowed) {
  write("a/b/c", "");
  write("d/e", "");
  std::filesystem::create_directory_symlink("../..", directory_.path() / "a/b/root");
  std::filesystem::create_directory_symlink(".", directory_.path() / "a/b/self");
  std::filesystem::create_directory_symlink("../../a", directory_.path() / "a/b/parent");
  std::filesystem::create_directory_symlink("../../d", directory_.path() / "a/b/other");
  std::filesystem::create_directory_symlink("../a", directory_.path() / "d/back");
  std::filesystem::create_directory_symlink("nowhere", directory_.path() / "a/b/broken");
  const auto prefixes = [store = open()](const std::string& place) {
    std::vector<std::string> names;
    for (const Store::Entry& entry : store->list(place))
      if (entry.is_prefix) names.push_back(entry.name);
    return names;
  };
  EXPECT_THAT(prefixes("a/b"), testing::ElementsAre("other"));
  EXPECT_THAT(prefixes("d"), testing::ElementsAre("back"));
  EXPECT_THAT(prefixes("a/b/other"), testing::ElementsAre());  // back in a, the start of the walk
}

TEST_F(LocalStoreTest, ALinkThatLeadsOutsideIsAnErrorThatNamesIt) {
  write("outside/chunk", "secret");
  write("outside/array/zarr.json", "{}");
  write("store/a/0", "x");
  const auto link = [this](const char* target, const char* at) {
    std::filesystem::create_symlink(target, directory_.path() / at);
  };
  link("../../outside/chunk", "store/a/1");
  std::filesystem::create_directory(directory_.path() / "store/b");
  link("../../outside/array", "store/b/array");
  std::filesystem::create_directory(directory_.path() / "store/c");
  link("1", "store/a/2");  // inside, but on to one that is not
  link("/nowhere/at/all", "store/c/gone");
  const auto store = open_local_store(directory_.path() / "store");
  const auto failure = [&](auto&& body) -> std::string {
    try {
      body(*store);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::access_denied);
      EXPECT_THAT(error.why(), testing::HasSubstr("--follow-links"));
      EXPECT_EQ(error.where(), directory_.path() / "store");
      return error.why().substr(0, error.why().find(" leads"));
    }
    return "no error";
  };
  EXPECT_EQ(failure([](Store& s) { s.read("a/1"); }), "the symbolic link 'a/1'");
  EXPECT_EQ(failure([](Store& s) { s.size("a/1"); }), "the symbolic link 'a/1'");
  EXPECT_EQ(failure([](Store& s) { s.read("a/2"); }), "the symbolic link 'a/1'");
  EXPECT_EQ(failure([](Store& s) { s.read("b/array/zarr.json"); }), "the symbolic link 'b/array'");
  EXPECT_EQ(failure([](Store& s) { s.read("b/array/none"); }), "the symbolic link 'b/array'");
  EXPECT_EQ(failure([](Store& s) { s.read("c/gone"); }), "the symbolic link 'c/gone'");
  // In a listing it is only a name: its neighbours are available.
  ASSERT_EQ(store->list("b").size(), 1u);
  EXPECT_TRUE(store->list("b").front().is_prefix);
  EXPECT_EQ(failure([](Store& s) { s.list("b/array"); }), "the symbolic link 'b/array'");

  const auto trusting = open_local_store(directory_.path() / "store", {.follow_links = true});
  EXPECT_EQ(text_of(trusting->read("a/1")), "secret");
  EXPECT_EQ(text_of(trusting->read("b/array/zarr.json")), "{}");
  EXPECT_FALSE(trusting->read("b/array/none"));
  EXPECT_TRUE(trusting->list("b").front().is_prefix);
}

TEST_F(LocalStoreTest, TheRootItselfMayBeALink) {
  write("store/a", "x");
  std::filesystem::create_directory_symlink(directory_.path() / "store",
                                            directory_.path() / "link");
  EXPECT_EQ(text_of(open_local_store(directory_.path() / "link")->read("a")), "x");
}

TEST_F(LocalStoreTest, RootOpensFilesAsTheOwnerOfTheStore) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  constexpr uid_t kOwner = 54321;
  write("store/theirs", "x");
  write("store/not-theirs", "secret");
  write("store/closed/0", "secret");
  for (const char* place : {"store", "store/theirs"})
    ASSERT_EQ(::chown((directory_ / place).c_str(), kOwner, kOwner), 0);
  for (const char* place : {"store/theirs", "store/not-theirs"})
    ASSERT_EQ(::chmod((directory_ / place).c_str(), 0600), 0);
  ASSERT_EQ(::chmod((directory_ / "store/closed").c_str(), 0700), 0);
  const auto store = open_local_store(directory_.path() / "store");
  EXPECT_EQ(text_of(store->read("theirs")), "x");
  EXPECT_EQ(code_of([&] { store->read("not-theirs"); }), ErrorCode::access_denied);
  EXPECT_EQ(code_of([&] { store->list("closed"); }), ErrorCode::access_denied);
  // The thread is root again.
  EXPECT_TRUE(std::ifstream(directory_.path() / "store/not-theirs").is_open());
}

TEST_F(LocalStoreTest, TheStateChangesWithItsObjectAlone) {
  write("a/c/0/0", "one");
  write("a/c/0/1", "two");
  const auto version = [&](const std::string& key) { return open()->state(key); };
  const auto before = version("a/c/0/0");
  ASSERT_TRUE(before);
  EXPECT_EQ(version("a/c/0/0"), before);
  EXPECT_NE(version("a/c/0/1"), before);
  EXPECT_EQ(version("a/c/0/2"), 0u);
  EXPECT_EQ(version("a"), 0u);
  write("a/c/0/1", "new");
  EXPECT_EQ(version("a/c/0/0"), before);
  // Other bytes of the same number, and the modification time restored, as rsync and cp -p do.
  const std::filesystem::path file = directory_.path() / "a/c/0/0";
  const auto time = std::filesystem::last_write_time(file);
  write("a/c/0/0", "two");
  std::filesystem::last_write_time(file, time);
  EXPECT_NE(version("a/c/0/0"), before);
}

TEST_F(LocalStoreTest, TheStateIsThatOfTheReadsThatFollow) {
  write("a", "one");
  const auto store = open();
  ASSERT_TRUE(store->state("a"));
  write("a", "two");
  EXPECT_EQ(code_of([&] { store->read("a"); }), ErrorCode::stale);
  EXPECT_EQ(code_of([&] { store->state("a"); }), ErrorCode::stale);
}

TEST_F(LocalStoreTest, KeepsItsDirectoryWhenThatIsRenamed) {
  write("store/a", "x");
  const auto store = open_local_store(directory_.path() / "store");
  std::filesystem::rename(directory_.path() / "store", directory_.path() / "other");
  EXPECT_EQ(text_of(store->read("a")), "x");
}

TEST_F(LocalStoreTest, AnObjectHasOneVersion) {
  for (const char* key : {"a", "b", "c", "d"}) write(key, "0123456789");
  const auto store = open();
  for (const char* key : {"a", "b", "c", "d"}) EXPECT_EQ(text_of(store->read(key, {2, 3})), "234");
  write("a", "9876543210");
  write("new", "9876543210");
  std::filesystem::rename(directory_.path() / "new", directory_.path() / "b");
  std::filesystem::remove(directory_.path() / "c");
  for (const char* key : {"a", "b", "c"}) {
    std::byte out[2];
    EXPECT_EQ(code_of([&] { store->read(key, {}); }), ErrorCode::stale) << key;
    EXPECT_EQ(code_of([&] { store->read_into(key, 0, out); }), ErrorCode::stale) << key;
    EXPECT_EQ(code_of([&] { store->size(key); }), ErrorCode::stale) << key;
  }
  EXPECT_EQ(text_of(store->read("d")), "0123456789");
  write("c", "0123456789");
  EXPECT_EQ(code_of([&] { store->read("c", {}); }),
            ErrorCode::stale);  // it came back: another file
  EXPECT_EQ(text_of(open()->read("a")), "9876543210");
}

TEST_F(LocalStoreTest, AnObjectWhoseVersionIsJustBeingKeptIsRead) {
  // State while another thread reads the object for the first time, and after a daemon was killed
  // at that moment.
  write("a", "0123456789");
  const auto table = std::make_shared<VersionTable>();
  table->accept("a", VersionTable::kUnknown);
  table->accept("b", VersionTable::kUnknown);
  const auto store = open_local_store(directory_.path(), {.versions = {.table = table}});
  EXPECT_EQ(text_of(store->read("a")), "0123456789");
  write("a", "9876543210");
  EXPECT_EQ(code_of([&] { store->read("a", {}); }), ErrorCode::stale);
  EXPECT_EQ(code_of([&] { store->read("b", {}); }), ErrorCode::stale);  // the object existed
}

TEST_F(LocalStoreTest, WhatWasAbsentMayAppear) {
  const auto store = open();
  EXPECT_EQ(store->size("a/b"), std::nullopt);
  EXPECT_EQ(store->read("a/b", {}), std::nullopt);
  write("a/b", "0123");
  EXPECT_EQ(text_of(store->read("a/b")), "0123");
}

TEST_F(LocalStoreTest, EachChangeOfAFileIsNoticedHoweverSoonItComes) {
  // Overwrites with the same size, in place, within a tick of the kernel's clock: the time stamp
  // alone could stay.
  for (int i = 0; i < 20; ++i) {
    const std::string key = "k" + std::to_string(i);
    write(key, "before");
    const auto store = open();
    EXPECT_EQ(text_of(store->read(key)), "before");
    std::fstream(directory_.path() / key, std::ios::in | std::ios::out | std::ios::binary)
        << "behind";
    EXPECT_EQ(code_of([&] { store->read(key, {}); }), ErrorCode::stale);
  }
}

TEST_F(LocalStoreTest, AFileThatIsRewrittenDuringTheReadIsNoMixture) {
  constexpr std::size_t kSize = 8 << 20;
  write("a", std::string(kSize, 'x'));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (char c = 'a'; !stop; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
      write("new", std::string(kSize, c));
      std::filesystem::rename(directory_.path() / "new", directory_.path() / "a");
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
  });
  for (int i = 0; i < 20; ++i) {
    const auto store = open();
    std::string first;
    try {
      for (std::uint64_t offset = 0; offset < kSize; offset += kSize / 4) {
        const std::string part = text_of(store->read("a", {offset, kSize / 4}));
        if (first.empty()) first = part;
        EXPECT_TRUE(part == first);
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::stale);
    }
  }
  stop = true;
  writer.join();
}

TEST_F(LocalStoreTest, AnotherStoreInItsPlaceIsNotRead) {
  write("store/a", "0123");
  write("store/b", "0123");
  const auto store = open_local_store(directory_.path() / "store");
  EXPECT_EQ(text_of(store->read("a")), "0123");
  std::filesystem::remove_all(directory_.path() / "store");
  write("store/a", "4567");
  write("store/b", "4567");
  EXPECT_EQ(code_of([&] { store->read("a", {}); }), ErrorCode::stale);
  EXPECT_EQ(store->read("b", {}),
            std::nullopt);  // a caller that takes it for fill values looks for the array first
}

TEST_F(LocalStoreTest, CountsTheVersions) {
  write("a", "0");
  write("b", "0");
  const auto store = open();
  store->read("a");
  store->read("a");
  store->size("b");
  ASSERT_EQ(store->counters().size(), 2u);
  EXPECT_EQ(store->counters()[0].name, "object_versions");
  EXPECT_EQ(store->counters()[0].value, 2u);
}

TEST_F(LocalStoreTest, SaysWhyItCannotBeOpened) {
  write("file", "x");
  auto message = [](const std::filesystem::path& path) -> std::string {
    try {
      open_local_store(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_found);
      return error.why();
    }
    return "no error";
  };
  EXPECT_EQ(message(directory_.path() / "nothing"), "no such directory");
  EXPECT_EQ(message(directory_.path() / "file"), "this is a file; a Zarr store is a directory");
}

}  // namespace local_test
}  // namespace batchfs
