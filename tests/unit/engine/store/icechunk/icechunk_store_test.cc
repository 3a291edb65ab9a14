#include "engine/store/icechunk/icechunk_store.h"

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/icechunk/icechunk_files.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace icechunk_store_test {

using icechunk::base32;
using testing::HasSubstr;

constexpr std::uint64_t kMemory = 8 << 20;

std::shared_ptr<MemoryStore> repository(bool local) {
  const auto store = std::make_shared<MemoryStore>();
  store->local = local;
  store->set("repo", repo_file({ref_of("main", 0)}, {}, {snapshot_info('s', -1, 100, "hello")}));
  store->set("snapshots/" + base32(object_id('s')),
             snapshot_file('s', {group_node('r', "/", "{root}"),
                                 array_node('a', "/g/a", "{a}", {manifest_use('m', {0, 9})})}));
  store->set(
      "manifests/" + base32(object_id('m')),
      manifest_file('m', {array_refs('a', {inline_ref({0}, "inline"), native_ref({1}, 'c', 2, 5),
                                           native_ref({2}, 'x', 0, 5), native_ref({3}, 'c', 100, 5),
                                           native_ref({4}, 'c', 0, 0),
                                           file_ref({5}, "s3://bucket/f", 1, 3)})}));
  store->set("chunks/" + base32(object_id('c')), "0123456789");
  return store;
}

std::shared_ptr<Store> open(const std::shared_ptr<MemoryStore>& in, IcechunkOptions options = {},
                            VirtualOptions virtual_options = {}) {
  return open_icechunk_store({in, in,
                              [in](const std::string&) {
                                const auto outside = std::make_shared<MemoryStore>();
                                outside->local = in->local;
                                outside->set("f", "abcdef");
                                return outside;
                              },
                              std::move(virtual_options)},
                             options, kMemory);
}

std::string text_of(const std::optional<Buffer>& bytes) {
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size())
               : "missing";
}
std::string text(Store& store, const std::string& key, ByteRange range = {}) {
  try {
    return text_of(store.read(key, range));
  } catch (const Error& error) {
    return error.what();
  }
}
std::string text_async(Store& store, const std::string& key, ByteRange range = {}) {
  std::promise<ReadOutcome> result;
  store.read_async(key, range, [&result](ReadOutcome got) { result.set_value(std::move(got)); });
  const ReadOutcome got = result.get_future().get();
  if (const auto* error = std::get_if<std::exception_ptr>(&got)) return error_of(*error).what();
  return text_of(std::get<std::optional<Buffer>>(got));
}

class IcechunkStores : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(LocalAndNot, IcechunkStores, testing::Bool());

TEST_P(IcechunkStores, ReadsDocumentsAndChunks) {
  const auto store = open(repository(GetParam()));
  for (auto* read : {text, text_async}) {
    EXPECT_EQ(read(*store, "zarr.json", {}), "{root}");
    EXPECT_EQ(read(*store, "g/a/zarr.json", {}), "{a}");
    EXPECT_EQ(read(*store, "g/zarr.json", {}), "missing");
    EXPECT_EQ(read(*store, "g/a/c/0", {}), "inline");
    EXPECT_EQ(read(*store, "g/a/c/0", {2, 3}), "lin");
    EXPECT_EQ(read(*store, "g/a/c/1", {}), "23456");
    EXPECT_EQ(read(*store, "g/a/c/1", {1, 2}), "34");
    EXPECT_EQ(read(*store, "g/a/c/1", {0, 2, true}), "56");
    EXPECT_EQ(read(*store, "g/a/c/1", {9, 2}), "");
    EXPECT_EQ(read(*store, "g/a/c/7", {}), "missing");
    EXPECT_EQ(read(*store, "g/a/c/100", {}), "missing");
  }
  EXPECT_EQ(store->size("g/a/c/1"), 5u);
  EXPECT_FALSE(store->size("g/a/c/7"));
  std::byte out[4];
  const auto got = store->read_into("g/a/c/1", 3, out);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->bytes, 2u);
  EXPECT_EQ(got->object_size, 5u);
  EXPECT_EQ(static_cast<char>(out[0]), '5');
  EXPECT_TRUE(store->is_fixed());
  EXPECT_EQ(store->revision()->id, base32(object_id('s')));
  EXPECT_EQ(store->revision()->chosen_by, "branch main");
}

TEST_P(IcechunkStores, ListsChunksFromTheManifests) {
  const auto objects = repository(GetParam());
  objects->set(
      "snapshots/" + base32(object_id('s')),
      snapshot_file('s',
                    {group_node('r', "/", "{}"),
                     array_node('a', "/a", R"({"shape": [9, 9]})",
                                {manifest_use('m', {0, 5, 0, 9}), manifest_use('n', {5, 9, 0, 9})}),
                     array_node('b', "/b", R"({"shape": []})", {manifest_use('m', {})}),
                     array_node('e', "/e", R"({"shape": [3]})", {})}));
  objects->set("manifests/" + base32(object_id('m')),
               manifest_file('m', {array_refs('a', {native_ref({0, 2}, 'c', 0, 5),
                                                    inline_ref({4, 0}, "inline"),
                                                    file_ref({4, 10}, "s3://b/f", 1, 3)}),
                                   array_refs('b', {inline_ref({}, "scalar")})}));
  objects->set("manifests/" + base32(object_id('n')),
               manifest_file('n', {array_refs('a', {native_ref({7, 8}, 'c', 0, 6)})}));
  const auto store = open(objects);
  const auto names = [&](const std::string& prefix) {
    std::vector<std::string> found;
    for (const Store::Entry& entry : store->list(prefix))
      found.push_back(entry.name + (entry.is_prefix ? "/" : ""));
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("a"), (Names{"c/", "zarr.json"}));
  EXPECT_EQ(names("a/c"), (Names{"0/", "4/", "7/"}));
  EXPECT_EQ(names("a/c/4"), (Names{"0"}));  // the other one lies outside of the manifest's part
  EXPECT_EQ(names("a/c/7"), (Names{"8"}));
  EXPECT_EQ(names("a/c/8"), (Names{}));
  EXPECT_EQ(names("a/c/7/8"), (Names{}));
  EXPECT_EQ(names("b"), (Names{"c", "zarr.json"}));
  EXPECT_EQ(names("e"), (Names{"zarr.json"}));
  EXPECT_EQ(store->size("a/c/7/8"), 6u);
  EXPECT_EQ(store->size("b/c"), 6u);
}

TEST_P(IcechunkStores, WhatIsReferredToAndNotThereIsAnError) {
  const auto store = open(repository(GetParam()));
  for (auto* read : {text, text_async}) {
    EXPECT_THAT(read(*store, "g/a/c/2", {}), HasSubstr("garbage collection"));
    EXPECT_THAT(read(*store, "g/a/c/3", {}), HasSubstr("shorter than the manifest says"));
    EXPECT_THAT(read(*store, "g/a/c/4", {}), HasSubstr("no bytes"));
    EXPECT_THAT(read(*store, "g/a/c/5", {}), HasSubstr("--virtual s3://bucket/"));
    EXPECT_THAT(read(*store, "g/a/c/1", {0, UINT64_MAX, false, 4}), HasSubstr("at most 4"));
    EXPECT_THAT(read(*store, "g/a/0", {}), HasSubstr("chunk_key_encoding"));
    EXPECT_EQ(read(*store, "g/a/.zattrs", {}), "missing");
  }
  std::byte out[4];
  EXPECT_THROW(store->read_into("g/a/c/2", 0, out), Error);
}

TEST_P(IcechunkStores, ReadsFilesOutsideThatAreAllowed) {
  const auto store = open(repository(GetParam()), {}, {.places = {"s3://bucket/"}});
  EXPECT_FALSE(store->is_local());
  EXPECT_EQ(text(*store, "g/a/c/5"), "bcd");
  EXPECT_EQ(text_async(*store, "g/a/c/5", {1, 1}), "c");
}

TEST(IcechunkStore, LogsItsHistory) {
  const auto store = open(repository(true));
  const auto log = icechunk_log(*store, 10);
  ASSERT_TRUE(log);
  EXPECT_TRUE(log->complete);
  ASSERT_EQ(log->history.size(), 1u);
  EXPECT_EQ(log->history[0].message, "hello");
  ASSERT_EQ(log->branches.size(), 1u);
  MemoryStore other;
  EXPECT_FALSE(icechunk_log(other, 10));
}

TEST(IcechunkStore, IsOpenedOrSaysWhyNot) {
  EXPECT_EQ(open(std::make_shared<MemoryStore>()), nullptr);
  const auto in = repository(true);
  const auto refusal = [&in](const IcechunkOptions& options) -> std::string {
    try {
      open(in, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({.snapshot = base32(object_id('t'))}), HasSubstr("no snapshot"));
  in->set("snapshots/" + base32(object_id('e')), snapshot_file('e', {}));
  EXPECT_THAT(refusal({.snapshot = base32(object_id('e'))}), HasSubstr("nothing had been written"));
}

TEST(IcechunkStore, TheFirstChunkTakesFourRoundTrips) {
  const auto in = repository(false);
  const auto store = open(in);
  text(*store, "g/a/c/1");
  // repo with a branch's file beside it, snapshot, manifest, chunk.
  const std::map<std::string, int> asked = in->asked;
  EXPECT_EQ(asked.size(), 5u);
  for (const auto& [key, times] : asked) EXPECT_EQ(times, 1) << key;
}

}  // namespace icechunk_store_test
}  // namespace batchfs
