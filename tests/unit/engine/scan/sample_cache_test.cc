#include "engine/scan/sample_cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace sample_cache_test {

class SampleCacheTest : public testing::Test {
 protected:
  SampleCacheTest() {
    std::string name = (std::filesystem::temp_directory_path() / "batchfs-test-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~SampleCacheTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path file() const {
    return std::filesystem::directory_iterator(directory_ / "samples")->path();
  }
  static SampleIndex index() { return SampleIndex({0xdeadbeef12345678, 0x3ff}, 75); }

  std::filesystem::path directory_;
};

TEST_F(SampleCacheTest, GivesBackWhatItKeeps) {
  const SampleCache cache(directory_ / "made" / "here");
  EXPECT_EQ(cache.find("key", 75), nullptr);
  cache.keep("key", index());
  const auto found = cache.find("key", 75);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->windows(), 75);
  EXPECT_TRUE(std::equal(found->words().begin(), found->words().end(), index().words().begin()));
  EXPECT_EQ(cache.find("other key", 75), nullptr);
  EXPECT_EQ(cache.find("key", 76), nullptr);
}

TEST_F(SampleCacheTest, DamageIsAsGoodAsNothing) {
  const SampleCache cache(directory_);
  cache.keep("key", index());
  std::string bytes;
  {
    std::ifstream in(file(), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << damaged;
    EXPECT_EQ(cache.find("key", 75), nullptr) << i;
  }
  for (std::size_t length : {std::size_t{0}, std::size_t{7}, bytes.size() - 1}) {
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << bytes.substr(0, length);
    EXPECT_EQ(cache.find("key", 75), nullptr) << length;
  }
  std::ofstream(file(), std::ios::binary | std::ios::trunc) << bytes + "x";
  EXPECT_EQ(cache.find("key", 75), nullptr);
  cache.keep("key", index());
  EXPECT_NE(cache.find("key", 75), nullptr);
}

TEST_F(SampleCacheTest, WithoutADirectoryNothingIsKept) {
  const SampleCache cache("");
  cache.keep("key", index());
  EXPECT_EQ(cache.find("key", 75), nullptr);
}

TEST_F(SampleCacheTest, TheHundredLastUsedAreKept) {
  const SampleCache cache(directory_);
  cache.keep("first", index());
  for (int i = 0; i < 120; ++i) {
    cache.keep("key " + std::to_string(i), index());
    ASSERT_NE(cache.find("first", 75), nullptr);  // used again and again
  }
  EXPECT_EQ(cache.find("key 0", 75), nullptr);
  EXPECT_NE(cache.find("key 119", 75), nullptr);
}

TEST_F(SampleCacheTest, ADirectoryThatCannotBeMadeIsAnError) {
  std::ofstream(directory_ / "file") << "x";
  EXPECT_THROW(SampleCache(directory_ / "file").keep("key", index()), Error);
}

TEST(SampleKey, SaysWhatSamplesDependOn) {
  const auto store = std::make_shared<MemoryObjects>();
  MemoryData data;
  data.store = store;
  const auto dataset =
      data.add("t", "<f4", {"time"}, {4}, std::vector<float>{1, 2, 3, 4}).dataset();
  const Json versions = {{"t", "4"}};
  auto key = [&](const std::string& rest, const std::string& snapshot, const Json& of) {
    return sample_key(
        *store, snapshot,
        *View::parse(dataset, R"({"missing": {"nan": "skip"}, )" + rest + "}", "v", "test"), of);
  };
  const std::string plain = key(R"("window": {"time": 1})", "1", versions);
  EXPECT_EQ(
      plain,
      key(R"("name": "w", "window": {"time": 1}, "batch": 3, "dtype": "float64", "epochs": 9)", "1",
          versions));
  EXPECT_NE(plain, key(R"("window": {"time": 2})", "1", versions));
  EXPECT_NE(plain,
            key(R"("window": {"time": 1}, "select": {"time": {"from": "#1"}})", "1", versions));
  EXPECT_NE(plain, key(R"("window": {"time": 1})", "2", versions));
  EXPECT_NE(plain, key(R"("window": {"time": 1})", "1", {{"t", "5"}}));
}

}  // namespace sample_cache_test
}  // namespace batchfs
