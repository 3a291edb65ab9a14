#include "tools/service/mounted_generations.h"

#include <fmt/format.h>

namespace batchfs {

namespace {

/// The files, which hold the generation.
std::shared_ptr<Files> files_of(const std::shared_ptr<Generation>& generation) {
  return {generation, generation->files.get()};
}

}  // namespace

MountedGenerations::MountedGenerations(std::shared_ptr<Generation> first, unsigned tag,
                                       bool inherited, Engine& engine)
    : newest_(std::move(first)), generations_(files_of(newest_), tag, inherited), leaving_(engine) {
  leaving_.add(newest_);
}

std::string MountedGenerations::refresh(const Environment& with) {
  const std::string fixed = fixed_version(with.options.store);
  if (!fixed.empty()) return describe_changes(*newest_, nullptr, fixed);
  const unsigned tag = generations_.free_tag();
  const auto next = read_again(*newest_, with.options, with.engine, with.log, with.make_files);
  if (next == nullptr) return describe_changes(*newest_, nullptr);
  // First: a daemon that takes over now finds the inode numbers that lookups are about to give.
  with.state.identify_again(next->identity(), tag, next->time);
  generations_.add(files_of(next), tag);
  if (with.handoff != nullptr) with.handoff->set_views(next->views, next);
  const std::string changes = describe_changes(*newest_, next.get());
  newest_ = next;
  leaving_.add(newest_);
  sweep(with);
  with.log.info(fmt::format("read the store again: snapshot {}, {} earlier ones are in use",
                            newest_->opened.hierarchy->snapshot_id, generations_.size() - 1));
  return changes;
}

bool MountedGenerations::sweep(const Environment& with) {
  for (const Generations::Name& each : generations_.take_outdated_names())
    with.forget_name(each.parent, each.name);
  const std::size_t left = generations_.drop_unused();
  leaving_.sweep();
  return left > 0 || leaving_.count() > 1;
}

}  // namespace batchfs
