#include "engine/store/references/reference_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace reference_table_test {

using references::ChunkKey;
using references::ReferenceTable;
using references::Target;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kMemory = 1 << 20;

std::string text_of(const std::optional<Target>& target) {
  if (!target) return "missing";
  if (target->kind == Target::Kind::within)
    return std::string(reinterpret_cast<const char*>(target->bytes.data()), target->bytes.size());
  std::string text(target->file);
  if (target->kind == Target::Kind::range)
    text += " " + std::to_string(target->offset) + " " + std::to_string(target->length);
  return text;
}

std::vector<std::string> names(const ReferenceTable& table, const std::string& prefix) {
  std::vector<std::string> found;
  for (const Store::Entry& entry : table.list(prefix, "here"))
    found.push_back(entry.name + (entry.is_prefix ? "/" : ""));
  return found;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::shared_ptr<const ReferenceTable> table_of(
    std::initializer_list<std::pair<std::string, std::uint64_t>> ranges) {
  ReferenceTable::Builder builder(kMemory);
  for (const auto& [key, offset] : ranges) builder.add_range(key, "file", offset, 1);
  return builder.finish();
}

TEST(ReferenceTable, TakesNumbersOffKeys) {
  const auto parsed = [](std::string_view key) -> std::string {
    ChunkKey chunk;
    if (!references::parse_chunk_key(key, chunk)) return "no";
    std::string text(chunk.path);
    for (const std::uint32_t number : chunk.index)
      text += (chunk.by_slash ? " /" : " .") + std::to_string(number);
    return text;
  };
  EXPECT_EQ(parsed("a/0.1.2"), "a .0 .1 .2");
  EXPECT_EQ(parsed("a/b/c/0/1"), "a/b/c /0 /1");
  EXPECT_EQ(parsed("a/7"), "a .7");
  EXPECT_EQ(parsed("7"), " .7");
  EXPECT_EQ(parsed("0/1"), " /0 /1");
  EXPECT_EQ(parsed("1/0.5"), "1 .0 .5");
  EXPECT_EQ(parsed("a/4294967295"), "a .4294967295");
  for (const char* other : {"a/.zarray", "a/01", "a/4294967296", "a/1.", "a/1..2", "a", "", "a/1x",
                            "a/0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0"})
    EXPECT_EQ(parsed(other), "no") << other;
}

TEST(ReferenceTable, FindsWhatWasAdded) {
  ReferenceTable::Builder builder(kMemory);
  builder.add_range("a/1.2", "x", 10, 5);
  builder.add_range("a/0.0", "y", 1, UINT64_C(1) << 40);
  builder.add_whole("a/5.1", "x");
  builder.add_within("a/1.0", bytes_of("abc"));
  builder.add_within(".zgroup", bytes_of("{}"));
  builder.add_within("a/.zarray", {});
  builder.add_range("b/c/9/3", "z", 0, 1);
  const auto table = builder.finish();
  EXPECT_EQ(text_of(table->find("a/1.2")), "x 10 5");
  EXPECT_EQ(text_of(table->find("a/0.0")), "y 1 1099511627776");
  EXPECT_EQ(text_of(table->find("a/5.1")), "x");
  EXPECT_EQ(text_of(table->find("a/1.0")), "abc");
  EXPECT_EQ(text_of(table->find(".zgroup")), "{}");
  EXPECT_EQ(text_of(table->find("a/.zarray")), "");
  EXPECT_EQ(text_of(table->find("b/c/9/3")), "z 0 1");
  for (const char* missing : {"a/0.1", "a/1.1", "a/6.0", "a/1/2", "a/1", "a/1.2.0", "b/c/9.3",
                              "b/c/3/9", "a", ".zattrs", "c/1.2"})
    EXPECT_EQ(text_of(table->find(missing)), "missing") << missing;
  EXPECT_EQ(table->references(), 7u);
  EXPECT_EQ(table->files(), 3u);
}

TEST(ReferenceTable, ListsDirectories) {
  const auto table = table_of({{"g/a/c/0/1", 0},
                               {"g/a/c/2/0", 0},
                               {"g/a/c/0/0", 0},
                               {"g/a/zarr.json", 0},
                               {"g/a.b/0.1", 0},
                               {"g/zarr.json", 0},
                               {"g/a.b/.zarray", 0},
                               {"g/a.b/0.0", 0},
                               {"h/0", 0},
                               {"x", 0}});
  EXPECT_THAT(names(*table, ""), ElementsAre("g/", "h/", "x"));
  EXPECT_THAT(names(*table, "g"), ElementsAre("a/", "a.b/", "zarr.json"));
  EXPECT_THAT(names(*table, "g/a"), ElementsAre("c/", "zarr.json"));
  EXPECT_THAT(names(*table, "g/a/c"), ElementsAre("0/", "2/"));
  EXPECT_THAT(names(*table, "g/a/c/0"), ElementsAre("0", "1"));
  EXPECT_THAT(names(*table, "g/a/c/1"), ElementsAre());
  EXPECT_THAT(names(*table, "g/a/c/2"), ElementsAre("0"));
  EXPECT_THAT(names(*table, "g/a.b"), ElementsAre(".zarray", "0.0", "0.1"));
  EXPECT_THAT(names(*table, "h"), ElementsAre("0"));
  EXPECT_THAT(names(*table, "nothing"), ElementsAre());
}

TEST(ReferenceTable, KeepsAMillionReferencesIn24BytesEach) {
  constexpr std::uint32_t kCount = 1'000'000;
  ReferenceTable::Builder builder(100 << 20);
  for (std::uint32_t i = 0; i < kCount; ++i)
    builder.add_range("t2m/" + std::to_string(i / 100) + "." + std::to_string(i % 100),
                      "s3://bucket/folder/" + std::to_string(i / 1000) + ".nc", i, 100);
  const auto table = builder.finish();
  EXPECT_EQ(table->files(), 1000u);
  EXPECT_LE(table->memory(), 24 * std::uint64_t{kCount} + 1000 * 64);
  EXPECT_EQ(text_of(table->find("t2m/9999.99")), "s3://bucket/folder/999.nc 999999 100");
}

}  // namespace reference_table_test
}  // namespace batchfs
