#include "engine/store/icechunk/manifest.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/store/icechunk/icechunk_files.h"

namespace batchfs {
namespace manifest_test {

using icechunk::ChunkPlace;
using icechunk::Manifest;

std::shared_ptr<const Manifest> parse(const std::string& file) {
  return Manifest::parse(bytes_of(file), object_id('m'), 64 << 20, 64 << 20);
}

std::optional<ChunkPlace> find(const Manifest& manifest, char node,
                               std::vector<std::uint32_t> index) {
  return manifest.find(node_id(node), index);
}

TEST(IcechunkManifest, FindsChunksOfEveryKind) {
  const std::uint64_t far = std::uint64_t{5} << 32;
  const auto manifest = parse(manifest_file(
      'm',
      {array_refs('b',
                  {native_ref({0, 3}, 'c', 10, 20), native_ref({0, 4}, 'd', far, 21),
                   inline_ref({7, 1}, "here"), file_ref({7, 2}, "s3://bucket/x", far, 30, 1234),
                   file_ref({9, 0}, "s3://bucket/x", 0, std::uint64_t{3} << 30, 1234)}),
       array_refs('a', {inline_ref({}, "scalar")}), array_refs('o', {inline_ref({0}, "old")})}));
  const auto native = find(*manifest, 'b', {0, 3});
  ASSERT_TRUE(native);
  EXPECT_EQ(native->kind, ChunkPlace::Kind::native);
  EXPECT_EQ(native->object, object_id('c'));
  EXPECT_EQ(native->offset, 10u);
  EXPECT_EQ(native->length, 20u);
  EXPECT_EQ(find(*manifest, 'b', {0, 4})->offset, far);
  EXPECT_EQ(find(*manifest, 'b', {0, 4})->object, object_id('d'));
  EXPECT_EQ(find(*manifest, 'b', {7, 1})->bytes.size(), 4u);
  const auto outside = find(*manifest, 'b', {7, 2});
  EXPECT_EQ(outside->kind, ChunkPlace::Kind::in_file);
  EXPECT_EQ(outside->file.location, "s3://bucket/x");
  EXPECT_EQ(outside->file.modified, 1234u);
  EXPECT_EQ(outside->offset, far);
  EXPECT_EQ(find(*manifest, 'b', {9, 0})->length, std::uint64_t{3} << 30);
  EXPECT_EQ(manifest->files(), 1u);
  for (const std::vector<std::uint32_t>& absent :
       {std::vector<std::uint32_t>{0, 0}, {0, 5}, {8, 1}, {10, 0}, {7, 3}})
    EXPECT_FALSE(find(*manifest, 'b', absent));
  EXPECT_FALSE(find(*manifest, 'x', {0}));
  EXPECT_EQ(find(*manifest, 'a', {})->bytes.size(), 6u);
  EXPECT_EQ(find(*manifest, 'o', {})->bytes.size(), 3u);  // as 0.x wrote arrays without dimensions
  EXPECT_THROW(find(*manifest, 'b', {0}), Error);
}

TEST(IcechunkManifest, ATileThatATiffFileDoesNotHoldWasNotWritten) {
  const auto manifest = parse(manifest_file(
      'm',
      {array_refs('a', {file_ref({0}, "s3://bucket/x", 0, 0), file_ref({1}, "s3://bucket/x", 8, 3),
                        file_ref({2}, "s3://bucket/x", 8, 0), native_ref({3}, 'c', 0, 0)}),
       array_refs('s', {file_ref({}, "s3://bucket/x", 0, 0)})}));
  EXPECT_FALSE(find(*manifest, 'a', {0}));
  EXPECT_FALSE(find(*manifest, 's', {}));
  EXPECT_TRUE(find(*manifest, 'a', {2}));
  std::vector<std::uint32_t> listed;
  manifest->list(node_id('a'), 1, {}, [&](const auto& chunk) { listed.push_back(chunk[0]); });
  EXPECT_EQ(listed, (std::vector<std::uint32_t>{1, 2, 3}));
  manifest->list(node_id('s'), 0, {}, [&](const auto&) { listed.clear(); });
  EXPECT_EQ(listed.size(), 3u);
}

TEST(IcechunkManifest, AReferenceTakesAtMost24Bytes) {
  std::vector<Fields> refs;
  for (std::uint32_t i = 0; i < 2000; ++i) refs.push_back(native_ref({i * 3, 0}, 'c', i, 9));
  const auto manifest = parse(manifest_file('m', {array_refs('a', refs)}));
  EXPECT_EQ(manifest->references(), 2000u);
  EXPECT_LE(manifest->memory(), 2000 * 24 + 1000u);
  EXPECT_EQ(find(*manifest, 'a', {5997, 0})->offset, 1999u);
  EXPECT_FALSE(find(*manifest, 'a', {5998, 0}));
}

TEST(IcechunkManifest, AGridOfMoreThan32Bits) {
  const auto manifest = parse(
      manifest_file('m', {array_refs('a', {native_ref({0, 0, 7}, 'c', 1, 9),
                                           native_ref({1'000'000, 1'000'000, 0}, 'c', 2, 9)})}));
  EXPECT_EQ(find(*manifest, 'a', {1'000'000, 1'000'000, 0})->offset, 2u);
  EXPECT_FALSE(find(*manifest, 'a', {1'000'000, 0, 0}));
}

TEST(IcechunkManifest, ListsChunks) {
  using Index = std::vector<std::uint32_t>;
  const auto manifest = parse(manifest_file(
      'm', {array_refs('b', {inline_ref({0, 3}, "x"), inline_ref({7, 1}, "x"),
                             inline_ref({7, 2}, "x"), inline_ref({9, 0}, "x")}),
            array_refs('d', {inline_ref({2}, "x"), inline_ref({3}, "x"), inline_ref({4}, "x")}),
            array_refs('a', {inline_ref({}, "scalar")}),
            array_refs('f', {inline_ref({0, 0}, "x"), inline_ref({1u << 20, 1u << 20}, "x")}),
            array_refs('o', {inline_ref({0}, "old")})}));
  const auto list = [&](char node, std::size_t rank, const Index& begin) {
    std::vector<Index> found;
    manifest->list(node_id(node), rank, begin, [&](const Index& chunk) { found.push_back(chunk); });
    return found;
  };
  using Found = std::vector<Index>;
  EXPECT_EQ(list('b', 2, {}), (Found{{0, 3}, {7, 1}, {7, 2}, {9, 0}}));
  EXPECT_EQ(list('b', 2, {7}), (Found{{7, 1}, {7, 2}}));
  EXPECT_EQ(list('b', 2, {8}), Found{});
  EXPECT_EQ(list('b', 2, {10}), Found{});
  EXPECT_EQ(list('d', 1, {}), (Found{{2}, {3}, {4}}));  // without gaps
  EXPECT_EQ(list('a', 0, {}), Found{{}});
  EXPECT_EQ(list('o', 0, {}), Found{{}});
  EXPECT_EQ(list('f', 2, {}), (Found{{0, 0}, {1u << 20, 1u << 20}}));  // in a large box
  EXPECT_EQ(list('f', 2, {1u << 20}), (Found{{1u << 20, 1u << 20}}));
  EXPECT_EQ(list('z', 2, {}), Found{});
  EXPECT_THROW(list('b', 1, {}), Error);
}

}  // namespace manifest_test
}  // namespace batchfs
