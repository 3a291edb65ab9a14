#include "engine/scan/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace verify_test {

using ::testing::ElementsAre;

/// A store with raw int32 arrays of 4 x 4 in chunks of 2 x 2.
struct Stored {
  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  std::vector<VerifyTarget> targets;

  std::shared_ptr<const ArrayMetadata> add(const std::string& path,
                                           const std::string& compressor = "null") {
    const Json zarray = parse_json(
        R"({"zarr_format": 2, "shape": [4, 4], "chunks": [2, 2], "dtype": "<i4", "order": "C",
        "filters": null, "fill_value": 0, "compressor": )" +
            compressor + "}",
        path);
    auto metadata =
        std::make_shared<const ArrayMetadata>(parse_array_v2(path, zarray, Json::object(), path));
    targets.push_back({metadata, std::nullopt});
    return metadata;
  }
  void set(const std::string& key, std::size_t bytes) {
    store->set(key, std::vector<std::byte>(bytes));
  }

  VerifyReport verify(VerifyOptions options = {}, std::size_t max_listed = 100) {
    options.threads = 1;  // a MemoryStore is for one thread
    if (options.memory == 0) options.memory = 1 << 20;
    VerifyCollector collector(max_listed);
    verify_arrays(store, targets, options, collector);
    return collector.report();
  }
};

std::vector<std::string> texts(const VerifyReport& report) {
  std::vector<std::string> all;
  for (const Finding& f : report.findings) all.push_back(f.array + " " + f.chunk + " " + f.what);
  return all;
}

TEST(Verify, FindsWrongSizesAndCountsTheRest) {
  Stored stored;
  stored.add("a");
  stored.set("a/0.0", 16);
  stored.set("a/0.1", 15);
  stored.set("a/1.1", 17);
  stored.set("a/.zarray", 3);
  stored.set("a/9.9", 16);
  stored.set("a/note.txt", 1);
  for (const bool listable : {true, false}) {
    stored.store->listable = listable;
    const VerifyReport report = stored.verify();
    EXPECT_THAT(texts(report), ElementsAre("a 0.1 size", "a 1.1 size"));
    EXPECT_EQ(report.chunks, 3u);
    EXPECT_EQ(report.missing_chunks, 1u);
    EXPECT_EQ(report.notes.size(), listable ? 2u : 0u);
    EXPECT_EQ(report.stored_bytes, 16u);
  }
}

TEST(Verify, FindsWhatDoesNotDecode) {
  Stored stored;
  stored.add("z", R"({"id": "zlib", "level": 1})");
  stored.set("z/0.0", 30);
  EXPECT_THAT(texts(stored.verify()), ElementsAre("z 0.0 data"));
}

TEST(Verify, WhatCannotBeReadIsFoundAndTheRestIsRead) {
  Stored stored;
  stored.add("a");
  stored.add("b");
  for (const char* key : {"a/0.0", "a/0.1", "b/0.0"}) stored.set(key, 16);
  stored.store->failing = {"a/0.1", "b"};
  const VerifyReport report = stored.verify();
  EXPECT_THAT(texts(report), ElementsAre("a 0.1 unreadable", "b  unreadable"));
  EXPECT_NE(report.findings[0].why.find("on fire"), std::string::npos);
  EXPECT_EQ(report.chunks, 2u);
}

TEST(Verify, ChecksWhatIsSelectedOnly) {
  Stored stored;
  stored.targets.clear();
  const auto metadata = stored.add("a");
  stored.targets = {{metadata, ChunkSelection{std::vector<std::int64_t>{1}, std::nullopt}}};
  stored.set("a/0.0", 1);
  stored.set("a/1.0", 2);
  const VerifyReport report = stored.verify();
  EXPECT_THAT(texts(report), ElementsAre("a 1.0 size"));
  EXPECT_EQ(report.missing_chunks, 1u);
}

TEST(Verify, WhatIsTooLargeOrUnsupportedIsNotChecked) {
  Stored stored;
  stored.add("a");
  stored.add("u", R"({"id": "unheard-of"})");
  const VerifyReport report = stored.verify({.memory = 15});
  ASSERT_EQ(report.not_checked.size(), 2u);
  EXPECT_EQ(report.not_checked[0].key, "a");
  EXPECT_NE(report.not_checked[0].why.find("--memory"), std::string::npos);
  EXPECT_NE(report.not_checked[1].why.find("unheard-of"), std::string::npos);
  EXPECT_EQ(report.problems + report.arrays, 0u);
}

TEST(Verify, EndsWhenItIsCancelled) {
  Stored stored;
  stored.add("a");
  for (const char* key : {"a/0.0", "a/0.1", "a/1.0"}) stored.set(key, 1);
  int asked = 0;
  const VerifyReport report = stored.verify({.cancelled = [&] { return ++asked > 2; }});
  EXPECT_TRUE(report.interrupted);
  EXPECT_LT(report.problems, 3u);
  EXPECT_EQ(report.missing_chunks, 0u) << "nobody knows";
}

TEST(Verify, SaysHowFarItIs) {
  Stored stored;
  stored.add("a");
  stored.set("a/0.0", 16);
  std::int64_t last = -1, all = 0;
  stored.verify({.progress = [&](std::int64_t done, std::int64_t total) {
    EXPECT_GE(done, last);
    last = done;
    all = total;
  }});
  EXPECT_EQ(all, 4);
  EXPECT_EQ(last, 4);
}

}  // namespace verify_test
}  // namespace batchfs
