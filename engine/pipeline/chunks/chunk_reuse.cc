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
    keys_.push_back(use.chunk);
    memory_.push_back(use.memory);
    last_.push_back(number);
  } else {
    uses_[static_cast<std::size_t>(std::exchange(last_[chunk], number))].next = number;
  }
  uses_.push_back({batches_, kNone, chunk, use.decoded, use.more, use.part});
}

ChunkReuse::Decoded ChunkReuse::decoded(const Rules& rules) const { return follow(rules, {}); }

std::vector<ChunkReuse::Supply> ChunkReuse::supplies(const Rules& rules, std::int64_t batch) const {
  std::vector<Supply> sources;
  follow(rules,
         [&](std::int64_t number, Supply::Kind kind, std::int64_t decoded_by, std::int64_t stays) {
           const Step& use = uses_[static_cast<std::size_t>(number)];
           if (use.batch != batch) return;
           Supply& source = sources.emplace_back(keys_[use.chunk], kind, decoded_by);
           for (std::int64_t next = stays; next != kNone;) {
             const Step& later = uses_[static_cast<std::size_t>(next)];
             if (later.batch - batch > rules.known_batches || next - number > rules.known_uses)
               break;
             ++source.later;
             next = later.next;
           }
         });
  return sources;
}

ChunkReuse::Decoded ChunkReuse::follow(const Rules& rules, const OnUse& on_use) const {
  Decoded decoded;
  std::vector<std::int64_t> served(memory_.size(), 0);  // batches before this one have their parts
  std::vector<std::int64_t> stays(memory_.size(), kNone);   // until this use, in uses_
  std::vector<std::int64_t> decoded_by(memory_.size(), 0);  // the batch
  std::set<std::int64_t> until;                             // these uses
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
    const auto report = [&](Supply::Kind kind) {
      if (on_use) on_use(number, kind, decoded_by[chunk], stays[chunk]);
    };
    decoded.least += std::max(0.0, use.part);
    if (stays_never) decoded.most += use.decoded + use.more;  // joined or not
    if (served[chunk] > use.batch) {
      report(Supply::Kind::joined);
      continue;
    }
    served[chunk] = use.batch + rules.joined;
    const bool kept = stays[chunk] != kNone;
    if (kept) {
      drop(chunk);
    } else {
      decoded_by[chunk] = use.batch;
      if (use.part < 0) decoded.least += use.decoded;
      decoded.likely += use.decoded;
      if (!stays_never) decoded.most += use.decoded + use.more;
    }
    std::int64_t next = use.next;
    while (next != kNone && uses_[static_cast<std::size_t>(next)].batch < served[chunk])
      next = uses_[static_cast<std::size_t>(next)].next;
    const bool may_stay =
        next != kNone && !stays_never && next - number <= rules.known_uses &&
        uses_[static_cast<std::size_t>(next)].batch - use.batch <= rules.known_batches;
    if (may_stay) {
      stays[chunk] = next;
      until.insert(next);
      memory += memory_[chunk];
      while (memory > rules.kept && !until.empty())
        drop(uses_[static_cast<std::size_t>(*std::prev(until.end()))].chunk);
    }
    report(kept ? Supply::Kind::kept : Supply::Kind::decoded);
  }
  return decoded;
}

}  // namespace batchfs
