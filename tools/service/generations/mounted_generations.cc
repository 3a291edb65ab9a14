#include "tools/service/generations/mounted_generations.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace batchfs {

namespace {

/// How long a refresh waits for the kernel to forget unused generations.
constexpr std::chrono::seconds kForgetTimeout{2};

/// A reading with its files, which hold the generation.
Generations::Reading reading_of(const std::shared_ptr<Generation>& generation) {
  return {{generation, generation->files.get()}, generation->number, generation->time};
}

/// Limit for names that the kernel keeps: their records take at most a 16th of the memory.
std::size_t max_names(std::uint64_t memory) {
  constexpr std::uint64_t kMin = 4096, kMax = KnownInodes::kMax / 2, kRecord = 56;  // bytes
  return std::clamp(memory / 16 / kRecord, kMin, kMax);
}

}  // namespace

MountedGenerations::MountedGenerations(std::shared_ptr<Generation> first, KnownInodes& inodes,
                                       Engine& engine, std::function<void()> on_crowded)
    : newest_(std::move(first)),
      generations_(reading_of(newest_), inodes, max_names(engine.budget().limit()),
                   std::move(on_crowded)),
      leaving_(engine) {
  leaving_.add(newest_);
}

/// Throws if programs use as many older generations as may exist. Unused ones are dropped when the
/// kernel has forgotten their names.
void MountedGenerations::make_room(const Environment& with) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point until = Clock::now() + kForgetTimeout;
  while (generations_.drop_unused() + 1 >= Generations::kMaxGenerations && Clock::now() < until) {
    sweep(with);
    generations_.wait_for_forgotten(std::chrono::milliseconds(50));
  }
  generations_.check_room();
}

std::string MountedGenerations::refresh(const Environment& with, bool force) {
  const std::string fixed = fixed_version(with.options.store);
  if (!fixed.empty()) return describe_changes(*newest_, nullptr, fixed);
  make_room(with);
  const auto next =
      read_again(*newest_, with.options, with.engine, with.log, with.make_files, force);
  if (next == nullptr) return describe_changes(*newest_, nullptr);
  // First: a daemon that takes over now must know the results of coming lookups.
  next->begin(with.options.session);
  generations_.add(reading_of(next));
  if (with.handoff != nullptr) with.handoff->set_views(next->views, next, next->reading_record());
  const std::string changes = describe_changes(*newest_, next.get());
  newest_ = next;
  leaving_.add(newest_);
  sweep(with);
  with.log.info(fmt::format("read the store again: snapshot {}, {} earlier ones are in use",
                            newest_->opened.hierarchy->snapshot_id, generations_.size() - 1));
  return changes;
}

bool MountedGenerations::sweep(const Environment& with) {
  generations_.give_up_names(with.names);
  const std::size_t left = generations_.drop_unused();
  leaving_.sweep();
  return left > 0 || leaving_.count() > 1;
}

}  // namespace batchfs
