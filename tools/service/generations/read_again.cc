#include "tools/service/generations/read_again.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "engine/base/json_text.h"

namespace batchfs {

namespace {

constexpr auto kPauseBetweenResizes = std::chrono::milliseconds(500);

std::shared_ptr<Generation> read_once(const Generation& now, const GenerationOptions& options,
                                      Engine& engine, Log& log,
                                      const std::function<void(Generation&)>& check, bool force) {
  // Batches make room for another reading, whose labels are in memory twice while they are decoded.
  Budget::Reservation room = engine.hold(2 * now.memory());
  auto next = read_generation(options, log);
  room.release();
  const bool same_metadata = next->opened.snapshot_id() == now.opened.snapshot_id();
  next->resolve(options, engine, log);
  if (!force && same_metadata && next->identity() == now.identity()) return nullptr;
  check(*next);
  return next;
}

}  // namespace

std::shared_ptr<Generation> read_again(const Generation& now, const GenerationOptions& options,
                                       Engine& engine, Log& log,
                                       const std::function<void(Generation&)>& check, bool force) {
  try {
    return read_once(now, options, engine, log, check, force);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::interrupted) throw;
    log.debug(fmt::format("reading the store again, first try: {}", error.what()));
  }
  std::this_thread::sleep_for(kPauseBetweenResizes);
  return read_once(now, options, engine, log, check, force);
}

std::string describe_changes(const Generation& before, const Generation* after,
                             const std::string& fixed) {
  Json changes = {{"changed", after != nullptr}};
  if (!fixed.empty()) changes["fixed"] = fixed;
  changes["snapshot"] = after != nullptr ? after->reading() : before.reading();
  Json views = Json::array();
  if (after != nullptr)
    for (const auto& view : after->views) {
      Json one = {
          {"name", view->name()}, {"samples", view->samples()}, {"batches", view->batches()}};
      for (const auto& old : before.views)
        if (old->name() == view->name()) {
          one["samples_before"] = old->samples();
          one["batches_before"] = old->batches();
        }
      views.push_back(std::move(one));
    }
  changes["views"] = std::move(views);
  return json_text(changes);
}

void LeavingStores::add(const std::shared_ptr<Generation>& generation) {
  for (const auto& store : generation->opened.stores()) leaving_.push_back({generation, store});
}

void LeavingStores::sweep() {
  std::erase_if(leaving_, [this](const Leaving& each) {
    if (!each.generation.expired()) return false;
    const std::shared_ptr<Store> store = each.store.lock();
    if (store != nullptr) engine_.forget(*store);
    return store == nullptr;
  });
}

}  // namespace batchfs
