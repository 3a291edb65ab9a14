#include "tools/service/generations/served_generations.h"

#include <utility>

#include <fmt/format.h>

#include "fs/generations/generations.h"

namespace batchfs {

ServedGenerations::ServedGenerations(std::shared_ptr<Generation> first, Environment environment)
    : with_(std::move(environment)), newest_(std::move(first)), leaving_(with_.engine) {
  leaving_.add(newest_);
}

std::string ServedGenerations::refresh(bool force) {
  const std::string fixed = fixed_version(with_.options.store);
  if (!fixed.empty()) return describe_changes(*newest_, nullptr, fixed);
  sweep();
  if (older_.size() + 1 >= Generations::kMaxGenerations)
    throw Error(
        ErrorCode::not_supported,
        fmt::format("readers still use {} earlier states of the store; close them", older_.size()));
  const auto next =
      read_again(*newest_, with_.options, with_.engine, with_.log, with_.check, force);
  if (next == nullptr) return describe_changes(*newest_, nullptr);
  // First: a server that continues the session must know the state that readers are about to see.
  if (with_.options.session >= 0) next->begin(with_.options.session);
  with_.handoff.set_views(next->views, next, next->reading_record());
  const std::string changes = describe_changes(*newest_, next.get());
  older_.push_back(std::exchange(newest_, next));
  leaving_.add(newest_);
  with_.log.info(fmt::format("read the store again: snapshot {}, {} earlier ones are in use",
                             newest_->opened.hierarchy->snapshot_id, older_.size()));
  return changes;
}

bool ServedGenerations::sweep() {
  // Readers get a generation with the server's views, and the server has only the newest.
  std::erase_if(older_, [](const auto& each) { return each.use_count() == 1; });
  leaving_.sweep();
  return leaving_.count() > 1;
}

}  // namespace batchfs
