#include "engine/array/array_presence.h"

#include <filesystem>
#include <fstream>

#include "engine/array/array.h"
#include "engine/store/local/local.h"
#include "tests/unit/engine/codec/damage.h"
#include "tests/unit/engine/store/memory_store.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace array_presence_test {

constexpr std::string_view kDocument =
    R"({"zarr_format": 3, "node_type": "array", "shape": [5], "data_type": "int32",
    "fill_value": 0, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
    "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]})";

std::shared_ptr<const ArrayMetadata> metadata(const std::string& source) {
  auto parsed = std::make_shared<ArrayMetadata>(
      parse_array_v3("a", parse_json(std::string(kDocument), "test"), "a/zarr.json"));
  parsed->source = source;
  return parsed;
}

/// "there", or the error.
std::string answer(ArrayPresence& presence) {
  const std::string failed = failure([&] { presence.confirm(); });
  return failed == "no error" ? "there" : failed;
}

/// A store whose reads end when the test allows, and that reports versions.
class LateStore final : public Store {
 public:
  std::string url() const override { return "late"; }
  std::optional<Buffer> read(const std::string&, ByteRange) override {
    throw Error(ErrorCode::internal, "not asked so");
  }
  std::optional<PartRead> read_into(const std::string&, std::uint64_t,
                                    std::span<std::byte>) override {
    throw Error(ErrorCode::internal, "not asked so");
  }
  std::optional<std::uint64_t> size(const std::string&) override {
    throw Error(ErrorCode::internal, "not asked so");
  }
  std::vector<Entry> list(const std::string&) override { return {}; }
  void read_version_async(const std::string& key, ByteRange, const std::string& known,
                          VersionedDone done) override {
    asked.push_back(key + " " + known);
    waiting.push_back([this, key, known, done = std::move(done)] {
      VersionedRead read;
      if (const auto object = objects.find(key); object != objects.end()) {
        read.version = "v1";
        read.unchanged = known == read.version;
        if (!read.unchanged) {
          read.bytes.emplace(object->second.size());
          std::memcpy(read.bytes->data(), object->second.data(), object->second.size());
        }
      }
      done(std::move(read));
    });
  }
  /// Answers all pending reads.
  void answer() {
    const auto now = std::exchange(waiting, {});
    for (const auto& each : now) each();
  }

  std::map<std::string, std::string> objects;
  std::vector<std::string> asked;
  std::vector<std::function<void()>> waiting;
};

TEST(ArrayPresence, NoChunkIsDeliveredBeforeItsDocumentIsKnown) {
  for (const bool has_own : {true, false}) {
    const auto store = std::make_shared<LateStore>();
    const std::string chunk(16, '\0');
    store->objects = {{"zarr.json", "{}"}, {"a/c/0", chunk}};
    if (has_own) store->objects["a/zarr.json"] = kDocument;
    const Array array(store, metadata("zarr.json"));
    int delivered = 0;
    const auto count = [&](auto) { ++delivered; };
    array.fetch({0}, {{0}, {4}}, count);
    // The document is asked for first, and answered last.
    ASSERT_EQ(store->asked, (std::vector<std::string>{"a/zarr.json ", "a/c/0 "}));
    store->waiting.back()();
    store->waiting.pop_back();
    EXPECT_EQ(delivered, 0) << has_own;
    store->answer();
    EXPECT_EQ(delivered, 1) << has_own;
    array.fetch({0}, {{0}, {4}}, count);
    store->answer();
    EXPECT_EQ(delivered, 2) << has_own;
  }
}

TEST(ArrayPresence, WhatWasReadFromNoStoreIsThere) {
  const auto store = std::make_shared<MemoryStore>();
  ArrayPresence presence(store, metadata(""));
  EXPECT_EQ(answer(presence), "there");
  EXPECT_TRUE(store->asked.empty());
}

TEST(ArrayPresence, TheArraysOwnDocumentMustBeThere) {
  for (const bool local : {true, false}) {
    const auto store = std::make_shared<MemoryStore>();
    store->local = local;
    store->set("a/zarr.json", kDocument);
    ArrayPresence presence(store, metadata("a/zarr.json"));
    EXPECT_EQ(answer(presence), "there");
    EXPECT_EQ(answer(presence), "there");
    store->objects.clear();
    EXPECT_EQ(answer(presence),
              "the object has gone since it was first read; mount, or run the command, again to "
              "see what is there "
              "(memory/a/zarr.json)");
  }
}

TEST(ArrayPresence, WithoutVersionsTheContentsAreCompared) {
  const auto store = std::make_shared<MemoryStore>();
  store->local = false;
  std::string longer(kDocument);
  longer.replace(longer.find("[5]"), 3, "[9]");
  store->set("a/zarr.json", longer);
  const std::string changed =
      "the object has changed since it was first read; mount, or run the command, again to see the "
      "new one "
      "(memory/a/zarr.json)";
  ArrayPresence presence(store, metadata("a/zarr.json"));
  EXPECT_EQ(answer(presence), changed);  // since it was parsed
  store->set("a/zarr.json", kDocument);
  EXPECT_EQ(answer(presence), "there");
  store->set("a/zarr.json", longer);
  EXPECT_EQ(answer(presence), changed);
}

TEST(ArrayPresence, ConsolidatedMetadataStandForAnArrayWithoutADocument) {
  for (const bool local : {true, false}) {
    const auto store = std::make_shared<MemoryStore>();
    store->local = local;
    store->set("zarr.json", "{}");
    ArrayPresence alone(store, metadata("zarr.json"));
    alone.begin();
    store->set("a/zarr.json", kDocument);
    ArrayPresence both(store, metadata("zarr.json"));
    both.begin();
    EXPECT_EQ(answer(alone), "there");
    EXPECT_EQ(answer(both), "there");
    store->objects.erase("a/zarr.json");  // the consolidated metadata remains
    EXPECT_EQ(answer(alone), "there");
    EXPECT_NE(answer(both), "there");
    store->objects.clear();
    EXPECT_NE(answer(alone), "there");
  }
}

TEST(ArrayPresence, AnArrayThatWasRemovedBeforeTheNextDaemonOpenedItIsGone) {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / "a");
  std::ofstream(directory.path() / "a/zarr.json") << kDocument;
  const LocalStoreOptions options{.versions = {.table = std::make_shared<VersionTable>()}};
  ArrayPresence before(open_local_store(directory.path(), options), metadata("zarr.json"));
  EXPECT_EQ(answer(before), "there");
  std::filesystem::remove_all(directory.path() / "a");
  ArrayPresence next(open_local_store(directory.path(), options), metadata("zarr.json"));
  EXPECT_NE(answer(next).find("has gone since it was first read"), std::string::npos)
      << answer(next);
}

TEST(ArrayPresence, AFailureToAskIsAFailure) {
  const auto store = std::make_shared<MemoryStore>();
  store->local = false;
  store->set("a/zarr.json", kDocument);
  store->failing = {"a/zarr.json"};
  ArrayPresence presence(store, metadata("a/zarr.json"));
  EXPECT_EQ(answer(presence), "the disk is on fire (a/zarr.json)");
  store->failing = {};
  EXPECT_EQ(answer(presence), "there");
}

TEST(ArrayPresence, WhatIsFoundMissingWhileARequestIsUnderWayIsForTheNextOne) {
  const auto store = std::make_shared<LateStore>();
  store->objects["a/zarr.json"] = kDocument;
  ArrayPresence presence(store, metadata("a/zarr.json"));
  std::vector<int> there, gone;
  const auto confirm = [&](int number) {
    presence.confirm(
        [&, number](std::exception_ptr error) { (error ? gone : there).push_back(number); });
  };
  confirm(0);
  for (int i = 1; i < 100; ++i) confirm(i);
  EXPECT_EQ(store->asked, (std::vector<std::string>{"a/zarr.json "}));
  store->answer();
  EXPECT_TRUE(
      there.empty());  // a cache may have answered: with the version, the store itself is asked
  store->answer();
  EXPECT_EQ(there.size(), 100u);
  EXPECT_EQ(store->asked, (std::vector<std::string>{"a/zarr.json ", "a/zarr.json v1"}));
  confirm(100);
  confirm(101);  // after the request was made: it may have been answered before
  store->answer();
  EXPECT_EQ(there.size(), 101u);
  store->objects.clear();
  store->answer();
  EXPECT_EQ(gone, std::vector<int>{101});
  EXPECT_TRUE(store->waiting.empty());
}

}  // namespace array_presence_test
}  // namespace batchfs
