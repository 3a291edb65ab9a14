#pragma once
// The inner chunks of one shard, checked against one another, in the order they lie in the shard.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/codec/sharding.h"

namespace batchfs {

struct ShardMember {
  std::uint64_t offset = 0, length = 0;
  std::int64_t number = 0;  // row-major in the shard
};

/// Called for each member with a wrong entry.
using BadMember = std::function<void(std::int64_t number, const std::string& why)>;

/// The members that the index places inside the shard, by offset. `bad` gets those outside it, and
/// those that overlap another member or the index: the latter are in the result, too. `size` is the
/// shard's.
std::vector<ShardMember> shard_members(const ShardLayout& layout, const ShardIndex& index,
                                       std::uint64_t size, const BadMember& bad);

/// Members that are read together: near one another and not much in all.
struct MemberRun {
  std::uint64_t offset = 0, length = 0;
  std::size_t first = 0, end = 0;  // of the members
};
std::vector<MemberRun> member_runs(const std::vector<ShardMember>& members);

}  // namespace batchfs
