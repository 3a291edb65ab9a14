#include "tools/service/generations/first_generation.h"

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/store/fingerprint.h"
#include "fs/session_state.h"

namespace batchfs {

namespace {

using Clock = std::chrono::steady_clock;

/// A writer that appends resizes one array after the other. Readers wait meanwhile. Missing objects
/// rarely appear within that time.
constexpr std::chrono::seconds kPatience{30}, kMissingPatience{2};
constexpr std::chrono::milliseconds kPause{500};

/// May the same reading succeed another time? Otherwise the store, or a view, has changed: changed
/// metadata make a view that needs them invalid.
bool is_passing(ErrorCode code) {
  switch (code) {
    case ErrorCode::interrupted:
    case ErrorCode::timed_out:
    case ErrorCode::access_denied:
    case ErrorCode::no_memory:
    case ErrorCode::io:
      return true;
    default:
      return false;
  }
}

std::shared_ptr<Generation> read(const GenerationOptions& options, Engine& engine, Log& log) {
  auto generation = read_generation(options, log);
  generation->resolve(options, engine, log);
  return generation;
}

/// The session's newest reading. Throws stale, or the errors of reading, if the store does not have
/// it any more.
std::shared_ptr<Generation> read_known(GenerationOptions options, SessionState::KnownReading known,
                                       Engine& engine, Log& log) {
  options.store.config.versions = known.versions;
  options.store.config.icechunk.pinned =
      pinned_snapshot(known.identity, options.store.config.icechunk);
  pin_others(known.identity, options.store.others);
  auto generation = read(options, engine, log);
  if (generation->identity() != known.identity)
    throw Error(ErrorCode::stale, "the metadata, or a view, differ");
  generation->time = known.time;
  generation->number = known.number;
  generation->versions = {known.version_slot, std::move(known.versions)};
  return generation;
}

std::shared_ptr<Generation> read_patiently(const GenerationOptions& options, Engine& engine,
                                           Log& log) {
  for (const Clock::time_point begin = Clock::now();;) {
    try {
      return read(options, engine, log);
    } catch (const Error& error) {
      const bool is_missing = error.code() == ErrorCode::not_found;
      const Clock::time_point until = begin + (is_missing ? kMissingPatience : kPatience);
      if (error.code() == ErrorCode::interrupted || Clock::now() + kPause > until) throw;
      log.warning(fmt::format("the store cannot be read, and is tried again: {}", error.what()));
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

std::shared_ptr<Generation> first_generation(const GenerationOptions& options, Engine& engine,
                                             Log& log, const std::string& refusal) {
  if (options.session < 0) return read(options, engine, log);
  const SessionState state(options.session);
  SessionState::KnownReading known = state.known_reading();
  if (known.number == 0) {
    auto first = read(options, engine, log);
    first->time = state.mount_time();
    return first;
  }
  try {
    return read_known(options, std::move(known), engine, log);
  } catch (const Error& error) {
    if (is_passing(error.code())) throw;
    if (!refusal.empty()) throw Error(ErrorCode::stale, refusal, error.what());
    log.warning(
        fmt::format("the store has changed since it was read; what is opened from now on "
                    "sees its new state: {}",
                    error.what()));
  }
  return read_patiently(options, engine, log);
}

std::string pinned_snapshot(const std::string& identity, const IcechunkOptions& options) {
  const std::vector<std::string> words = split(identity, ' ');
  const std::string branch = "branch " + (options.branch.empty() ? "main" : options.branch);
  const bool follows_branch = options.tag.empty() && options.snapshot.empty() && words.size() > 3 &&
                              words[3] == fingerprint(branch);
  return follows_branch ? words[1] : std::string();
}

void pin_others(const std::string& identity, std::vector<StoreOptions::Named>& others) {
  for (const std::string& word : split(identity, ' '))
    for (StoreOptions::Named& other : others)
      if (word.starts_with(other.name + "=")) other.pinned = word.substr(other.name.size() + 1);
}

}  // namespace batchfs
