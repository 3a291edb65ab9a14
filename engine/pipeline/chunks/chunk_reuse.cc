#include "engine/pipeline/chunks/chunk_reuse.h"

#include <iterator>
#include <set>
#include <utility>

namespace batchfs {

void ChunkReuse::use(const Use& use) {
  const auto [it, is_new] =
      chunks_.try_emplace(use.chunk, static_cast<std::uint32_t>(memory_.size()));
  const std::uint32_t chunk = it->second;
  const auto number = static_cast<std::int64_t>(uses_.size());
  if (is_new) {
    memory_.push_back(use.memory);
    last_.push_back(number);
  } else {
    uses_[static_cast<std::size_t>(std::exchange(last_[chunk], number))].next = number;
  }
  uses_.push_back({batches_, kNone, chunk, use.decoded, use.more, use.part});
}

ChunkReuse::Decoded ChunkReuse::decoded(const Rules& rules) const {
  Decoded decoded;
  std::vector<std::int64_t> served(memory_.size(), 0);  // batches before this one have their parts
  std::vector<std::int64_t> stays(memory_.size(), kNone);  // until this use, in uses_
  std::set<std::int64_t> until;                            // these uses
  double memory = 0;
  const auto drop = [&](std::uint32_t chunk) {
    until.erase(stays[chunk]);
    stays[chunk] = kNone;
    memory -= memory_[chunk];
  };
  for (std::int64_t number = 0; number < static_cast<std::int64_t>(uses_.size()); ++number) {
    const Step& use = uses_[static_cast<std::size_t>(number)];
    const std::uint32_t chunk = use.chunk;
    const bool stays_never = memory_[chunk] == 0;
    decoded.least += std::max(0.0, use.part);
    if (stays_never) decoded.most += use.decoded + use.more;  // joined or not
    if (served[chunk] > use.batch) continue;
    served[chunk] = use.batch + rules.joined;
    if (stays[chunk] != kNone) {
      drop(chunk);
    } else {
      if (use.part < 0) decoded.least += use.decoded;
      decoded.likely += use.decoded;
      if (!stays_never) decoded.most += use.decoded + use.more;
    }
    std::int64_t next = use.next;
    while (next != kNone && uses_[static_cast<std::size_t>(next)].batch < served[chunk])
      next = uses_[static_cast<std::size_t>(next)].next;
    if (next == kNone || stays_never || next - number > rules.known_uses ||
        uses_[static_cast<std::size_t>(next)].batch - use.batch > rules.known_batches)
      continue;
    stays[chunk] = next;
    until.insert(next);
    memory += memory_[chunk];
    while (memory > rules.kept && !until.empty())
      drop(uses_[static_cast<std::size_t>(*std::prev(until.end()))].chunk);
  }
  return decoded;
}

}  // namespace batchfs
