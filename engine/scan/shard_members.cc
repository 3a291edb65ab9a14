#include "engine/scan/shard_members.h"

#include <algorithm>

#include <fmt/format.h>

namespace batchfs {

namespace {
constexpr std::uint64_t kMaxRun = 8 << 20;   // bytes: enough for any store's rate
constexpr std::uint64_t kMaxGap = 64 << 10;  // bytes read in vain rather than requested separately
}  // namespace

std::vector<ShardMember> shard_members(const ShardLayout& layout, const ShardIndex& index,
                                       std::uint64_t size, const BadMember& bad) {
  std::vector<ShardMember> members;
  for (std::int64_t i = 0; i < layout.grid.chunk_count(); ++i) {
    try {
      if (const auto entry = index.entry(i)) members.push_back({entry->offset, entry->length, i});
    } catch (const Error& error) {
      bad(i, error.why());
    }
  }
  std::sort(members.begin(), members.end(), [](const ShardMember& a, const ShardMember& b) {
    return std::pair(a.offset, a.number) < std::pair(b.offset, b.number);
  });
  const std::uint64_t index_begin = layout.index_at_end ? size - layout.index_bytes : 0;
  const std::uint64_t index_end = index_begin + layout.index_bytes;
  const ShardMember* reaches = nullptr;  // of the members before, the one that ends last
  for (const ShardMember& member : members) {
    if (member.length == 0) continue;
    const std::uint64_t end = member.offset + member.length;
    if (member.offset < index_end && end > index_begin) {
      bad(member.number, fmt::format("bytes {} to {} of the shard are the shard index's as well",
                                     member.offset, end));
    } else if (reaches != nullptr && member.offset < reaches->offset + reaches->length) {
      std::string other;
      for (const std::int64_t at : layout.grid.chunk(reaches->number))
        other += (other.empty() ? "" : ".") + std::to_string(at);
      bad(member.number,
          fmt::format("bytes {} to {} of the shard overlap those of its chunk {}, {} to {}",
                      member.offset, end, other, reaches->offset,
                      reaches->offset + reaches->length));
    }
    if (reaches == nullptr || end > reaches->offset + reaches->length) reaches = &member;
  }
  return members;
}

std::vector<MemberRun> member_runs(const std::vector<ShardMember>& members) {
  std::vector<MemberRun> runs;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::uint64_t begin = members[i].offset, end = begin + members[i].length;
    if (!runs.empty()) {
      MemberRun& last = runs.back();
      const std::uint64_t last_end = last.offset + last.length, joined = std::max(end, last_end);
      if (begin <= last_end + kMaxGap && joined - last.offset <= kMaxRun) {
        last.length = joined - last.offset;
        last.end = i + 1;
        continue;
      }
    }
    runs.push_back({begin, end - begin, i, i + 1});
  }
  return runs;
}

}  // namespace batchfs
