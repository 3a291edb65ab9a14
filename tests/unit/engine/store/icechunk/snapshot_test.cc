#include "engine/store/icechunk/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/icechunk/icechunk_files.h"

namespace batchfs {
namespace snapshot_test {

using icechunk::Snapshot;
using testing::HasSubstr;

std::shared_ptr<const Snapshot> parse(const std::string& file, std::uint64_t memory = 1 << 20) {
  return Snapshot::parse(bytes_of(file), object_id('s'), memory);
}
std::string refusal(const std::string& file, std::uint64_t memory = 1 << 20) {
  try {
    parse(file, memory);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Old writers did not sort nodes, and '-' sorts before '/'.
std::string example() {
  return snapshot_file(
      's', {array_node('a', "/a/b", "{b}",
                       {manifest_use('m', {0, 2, 0, 3}), manifest_use('n', {2, 9, 0, 3})}),
            group_node('g', "/a", "{a}"), group_node('r', "/", "{}"),
            array_node('c', "/a-b", "{-}", {manifest_use('o', {})}),
            array_node('d', "/zero", "{0}", {manifest_use('p', {0, 1})})});
}

TEST(IcechunkSnapshot, FindsNodesInAnyOrder) {
  const auto snapshot = parse(example());
  EXPECT_EQ(snapshot->message(), "a message");
  EXPECT_EQ(snapshot->written_at(), 1'700'000'000'000'000u);
  ASSERT_NE(snapshot->find("a/b"), nullptr);
  EXPECT_EQ(snapshot->find("a/b")->document.size(), 3u);
  EXPECT_TRUE(snapshot->find("a/b")->is_array);
  EXPECT_FALSE(snapshot->find("a")->is_array);
  ASSERT_NE(snapshot->find(""), nullptr);
  EXPECT_EQ(snapshot->find("b"), nullptr);
  EXPECT_EQ(snapshot->nodes().size(), 5u);
}

std::vector<std::string> names(const Snapshot& snapshot, const std::string& prefix) {
  std::vector<std::string> found;
  for (const Store::Entry& entry : snapshot.list(prefix))
    found.push_back(entry.name + (entry.is_prefix ? "/" : ""));
  return found;
}

TEST(IcechunkSnapshot, Lists) {
  const auto snapshot = parse(example());
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(*snapshot, ""), (Names{"a/", "a-b/", "zarr.json", "zero/"}));
  EXPECT_EQ(names(*snapshot, "a"), (Names{"b/", "zarr.json"}));
  EXPECT_EQ(names(*snapshot, "a/b"), (Names{"zarr.json"}));
  EXPECT_EQ(names(*snapshot, "nothing"), (Names{}));
}

TEST(IcechunkSnapshot, KnowsTheManifestOfAChunk) {
  const auto snapshot = parse(example());
  const icechunk::Node& array = *snapshot->find("a/b");
  EXPECT_EQ(snapshot->manifest_of(array, {1, 2})->id, object_id('m'));
  EXPECT_EQ(snapshot->manifest_of(array, {2, 0})->id, object_id('n'));
  EXPECT_EQ(snapshot->manifest_of(array, {9, 0}), nullptr);
  EXPECT_EQ(snapshot->manifest_of(array, {0, 3}), nullptr);
  EXPECT_THROW(snapshot->manifest_of(array, {0}), Error);
  const auto may_hold = [&](std::uint32_t use, const std::vector<std::uint32_t>& begin) {
    return snapshot->may_hold(snapshot->manifests()[array.first_use + use], begin);
  };
  EXPECT_TRUE(may_hold(0, {}));
  EXPECT_TRUE(may_hold(0, {1}));
  EXPECT_FALSE(may_hold(0, {2}));
  EXPECT_TRUE(may_hold(1, {2, 0}));
  EXPECT_FALSE(may_hold(1, {9}));
  EXPECT_EQ(snapshot->manifest_of(*snapshot->find("a-b"), {5, 6, 7})->id, object_id('o'));
  EXPECT_EQ(snapshot->manifest_of(*snapshot->find("zero"), {})->id, object_id('p'));
}

TEST(IcechunkSnapshot, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal(snapshot_file('t', {})), HasSubstr("holds the snapshot"));
  for (const char* path : {"a", "", "/../a", "/a//b", "/a/", "/."})
    EXPECT_THAT(refusal(snapshot_file('s', {group_node('g', path, "{}")})),
                HasSubstr("is not a path of a node"))
        << path;
  EXPECT_THAT(
      refusal(snapshot_file('s', {group_node('g', "/a", "{}"), group_node('h', "/a", "{}")})),
      HasSubstr("two nodes"));
  std::vector<Fields> many;
  for (int i = 0; i < 1000; ++i) many.push_back(group_node('g', "/" + std::to_string(i), "{}"));
  const std::string file = snapshot_file('s', many);
  EXPECT_EQ(refusal(file), "");
  EXPECT_THAT(refusal(file, file.size() + 100), HasSubstr("--memory"));
}

}  // namespace snapshot_test
}  // namespace batchfs
