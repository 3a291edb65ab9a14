#include "engine/store/store.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/memory_store.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace store_test {

std::string refusal(const std::string& url) {
  try {
    open_store(url);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(OpenStore, TakesPathsAndFileAddresses) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "a") << "x";
  for (const std::string& url :
       {directory.path().string(), directory.path().string() + "///",
        "file://" + directory.path().string(), "file://" + directory.path().string() + "/"}) {
    const auto store = open_store(url);
    EXPECT_EQ(store->url(), directory.path().string());
    EXPECT_EQ(store->size("a"), 1u);
  }
}

TEST(OpenStore, ADirectoryMayBeCalledZip) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / "a.zip");
  EXPECT_EQ(open_store(directory / "a.zip")->url(), directory / "a.zip");
}

TEST(OpenStore, SaysWhatIsWrong) {
  EXPECT_EQ(refusal(""), "the store's path is empty");
  EXPECT_EQ(refusal("/no/such/place"), "no such directory (/no/such/place)");
  EXPECT_NE(refusal("gopher://x/y").find("gopher"), std::string::npos);
}

TEST(Keys, AreRelativePathsOfPlainNames) {
  for (const char* key : {"a", "a/b", ".zarray", "a/.zattrs", "c/0/1", "...", "a b", "\xc3\xa9"})
    EXPECT_TRUE(is_key(key)) << key;
  for (const std::string& key :
       {std::string(), std::string("/"), std::string("/a"), std::string("a/"), std::string("a//b"),
        std::string("."), std::string(".."), std::string("a/../b"), std::string("./a"),
        std::string("a\0b", 3)})
    EXPECT_FALSE(is_key(key)) << key;
  EXPECT_NO_THROW(check_key("a/b"));
  EXPECT_THROW(check_key("../a"), Error);
}

TEST(ReadAsync, EndsAsTheReadDoes) {
  MemoryStore store;
  store.set("a", std::string_view("xyz"));
  store.failing = {"broken"};
  int calls = 0;
  store.Store::read_async("a", {1, 1}, [&](const ReadOutcome& outcome) {
    ++calls;
    EXPECT_EQ(std::get<std::optional<Buffer>>(outcome)->data()[0], std::byte{'y'});
  });
  store.Store::read_async("b", {}, [&](const ReadOutcome& outcome) {
    ++calls;
    EXPECT_FALSE(std::get<std::optional<Buffer>>(outcome));
  });
  store.Store::read_async("broken", {}, [&](const ReadOutcome& outcome) {
    ++calls;
    EXPECT_THROW(std::rethrow_exception(std::get<std::exception_ptr>(outcome)), Error);
  });
  EXPECT_EQ(calls, 3);
}

TEST(ListingMemory, CountsLongAndShortNames) {
  const auto entries_of = [](std::size_t length) {
    ListingMemory memory;
    for (int count = 0;; ++count) {
      try {
        memory.add({std::string(length, 'x'), false}, "where");
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::no_memory);
        EXPECT_THAT(error.what(),
                    testing::HasSubstr("more than " + std::to_string(count) + " entries"));
        return count;
      }
    }
  };
  EXPECT_GT(entries_of(10), 500'000);
  EXPECT_LT(entries_of(1000), 40'000);
}

}  // namespace store_test
}  // namespace batchfs
