#include "engine/write/prediction/prediction_folder.h"

#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace prediction_folder_test {

using testing::ElementsAre;

TEST(PredictionFolder, NamesFilesAndObjectsBelow) {
  const TemporaryDirectory directory;
  const PredictionFolder folder("file://" + directory / "o/");
  EXPECT_EQ(folder.root(), directory / "o");
  EXPECT_TRUE(folder.names("a").empty());
  folder.store().put("a/c/0/1", "x");
  folder.store().put("a/c/2", "x");
  folder.store().put("a/zarr.json", "{}");
  folder.store().put("s/c", "x");
  std::ofstream(folder.path("a/c/3")).flush();
  EXPECT_THAT(folder.names("a"), ElementsAre("c", "zarr.json"));
  std::set<std::string> below;
  folder.each_object("a/c", [&](const std::string& key) { below.insert(key); });
  EXPECT_THAT(below, ElementsAre("0/1", "2"));
  below.clear();
  folder.each_object("s/c", [&](const std::string& key) { below.insert(key); });
  EXPECT_THAT(below, ElementsAre(""));
  EXPECT_TRUE(folder.has("a/c/2"));
  EXPECT_FALSE(folder.has("a/c/3") || folder.has("a/c") || folder.has("b"));
  folder.remove("a/c/2");
  folder.remove_folder("a/c");  // which has others
  EXPECT_FALSE(folder.has("a/c/2"));
  EXPECT_TRUE(folder.has("a/c/0/1"));
}

TEST(PredictionFolder, ReadsAFirstLine) {
  const TemporaryDirectory directory;
  const PredictionFolder folder(directory / "o");
  EXPECT_FALSE(folder.first_line("x", 100));
  const std::string longer(40'000, 'a');
  folder.store().put("x", longer + "\n" + longer);
  const auto line = folder.first_line("x", 50'000);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->text, longer);
  EXPECT_EQ(line->file_size, 80'001u);
  folder.store().put("y", longer);
  EXPECT_THROW(folder.first_line("y", 50'000), Error);
  folder.store().put("y", longer + longer + "\n");
  EXPECT_THROW(folder.first_line("y", 50'000), Error);
}

TEST(PredictionFolder, WaitsForALock) {
  const TemporaryDirectory directory;
  const PredictionFolder folder(directory / "o");
  std::unique_ptr<OutputStore::Lock> first = folder.wait_for_lock("parts/p/0.lock");
  std::atomic<bool> has_it = false;
  std::thread other([&] {
    const auto second = folder.wait_for_lock("parts/p/0.lock");
    has_it = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(has_it);
  first.reset();
  other.join();
  EXPECT_TRUE(has_it);
}

TEST(PredictionFolder, PlacesThatAreNoFolderAreRefused) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "file") << "x";
  for (const std::string& place : {std::string(), std::string("gs://bucket/x"), directory / "o.zip",
                                   directory / "file", std::string("a\0b", 3)})
    EXPECT_THROW(PredictionFolder{place}, Error) << place;
  EXPECT_EQ(PredictionFolder("/a/./b/../c//").root(), "/a/c");
}

}  // namespace prediction_folder_test
}  // namespace batchfs
