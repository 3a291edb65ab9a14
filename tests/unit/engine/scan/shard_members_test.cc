#include "engine/scan/shard_members.h"

#include <cstring>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/json.h"

namespace batchfs {
namespace shard_members_test {

using ::testing::ElementsAre;

/// Four inner chunks; the index is plain, 64 bytes.
ShardLayout layout(const char* location) {
  const Json configuration = {
      {"chunk_shape", {2}},
      {"codecs", {{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}}},
      {"index_codecs", {{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}}},
      {"index_location", location}};
  return ShardLayout(JsonRef(configuration, "shards"),
                     {{8}, make_type(Kind::unsigned_int, 1), {std::byte{0}}});
}

struct Found {
  std::vector<ShardMember> members;
  std::map<std::int64_t, std::string> bad;
};

Found members(const std::vector<std::uint64_t>& entries, std::uint64_t size,
              const char* location = "end") {
  const ShardLayout shard = layout(location);
  const ShardIndex index(shard, std::as_bytes(std::span(entries)), size);
  Found found;
  found.members =
      shard_members(shard, index, size,
                    [&](std::int64_t number, const std::string& why) { found.bad[number] = why; });
  return found;
}

constexpr std::uint64_t kNone = UINT64_MAX;

TEST(ShardMembers, LieInTheOrderOfTheShard) {
  const Found found = members({10, 5, kNone, kNone, 0, 10, 20, 0}, 100);
  ASSERT_EQ(found.members.size(), 3u);
  EXPECT_EQ(found.members[0].number, 2);
  EXPECT_EQ(found.members[1].number, 0);
  EXPECT_EQ(found.members[2].number, 3);
  EXPECT_TRUE(found.bad.empty());
}

TEST(ShardMembers, OutsideTheShard) {
  const Found found = members({101, 0, 90, 11, kNone, 5, kNone, kNone}, 100);
  EXPECT_EQ(found.bad.size(), 3u);
  EXPECT_TRUE(found.members.empty());
}

TEST(ShardMembers, OverAnother) {
  // The third lies inside the first, after the second.
  const Found found = members({0, 30, 5, 2, 20, 5, 30, 2}, 100);
  ASSERT_EQ(found.bad.size(), 2u);
  EXPECT_NE(found.bad.at(1).find("chunk 0, 0 to 30"), std::string::npos) << found.bad.at(1);
  EXPECT_NE(found.bad.at(2).find("chunk 0, 0 to 30"), std::string::npos) << found.bad.at(2);
  EXPECT_EQ(found.members.size(), 4u);
}

TEST(ShardMembers, OverTheIndex) {
  EXPECT_EQ(members({0, 10, 30, 7, kNone, kNone, kNone, kNone}, 100).bad.size(), 1u);
  EXPECT_EQ(members({0, 10, 29, 7, kNone, kNone, kNone, kNone}, 100).bad.size(), 0u);
  EXPECT_EQ(members({63, 10, 80, 7, kNone, kNone, kNone, kNone}, 100, "start").bad.size(), 1u);
  EXPECT_EQ(members({64, 10, 80, 7, kNone, kNone, kNone, kNone}, 100, "start").bad.size(), 0u);
}

TEST(MemberRuns, AreNearAndNotTooLong) {
  constexpr std::uint64_t kMega = 1 << 20;
  const auto runs = member_runs({{0, 10, 0},
                                 {10, 10, 1},
                                 {1000, 10, 2},
                                 {kMega, 5 * kMega, 3},
                                 {6 * kMega, 5 * kMega, 4},
                                 {6 * kMega + 5, 5, 5}});
  std::vector<std::uint64_t> flat;
  for (const MemberRun& run : runs)
    flat.insert(flat.end(), {run.offset, run.length, run.first, run.end});
  EXPECT_THAT(flat, ElementsAre(0, 1010, 0, 3, kMega, 5 * kMega, 3, 4, 6 * kMega, 5 * kMega, 4, 6));
  EXPECT_TRUE(member_runs({}).empty());
}

}  // namespace shard_members_test
}  // namespace batchfs
