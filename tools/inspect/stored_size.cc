#include "tools/inspect/stored_size.h"

#include <atomic>
#include <thread>
#include <vector>

#include "engine/zarr/node_path.h"

namespace batchfs {

namespace {

using Clock = std::chrono::steady_clock;

/// Bytes of these objects together. nullopt: one of them cannot be looked at, or it is too late.
std::optional<std::uint64_t> size_of(Store& store, const std::vector<std::string>& keys,
                                     Clock::time_point deadline, int threads) {
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (std::size_t i; !failed && (i = next++) < keys.size();) {
      try {
        if (Clock::now() > deadline) failed = true;
        if (!failed) bytes += store.size(keys[i]).value_or(0);
      } catch (const Error&) {
        failed = true;
      }
    }
  };
  std::vector<std::thread> workers;
  for (int i = 1; i < threads && static_cast<std::size_t>(i) < keys.size(); ++i) {
    try {
      workers.emplace_back(work);
    } catch (const std::exception&) {
      break;  // fewer threads do as well
    }
  }
  work();
  for (std::thread& worker : workers) worker.join();
  return failed ? std::nullopt : std::optional(bytes.load());
}

}  // namespace

std::optional<std::uint64_t> stored_size(Store& store, const std::string& path,
                                         Clock::time_point deadline, int threads) {
  if (!store.can_list()) return std::nullopt;
  std::uint64_t bytes = 0;
  std::vector<std::string> prefixes{path};
  try {
    while (!prefixes.empty()) {
      const std::string prefix = std::move(prefixes.back());
      prefixes.pop_back();
      std::vector<std::string> keys;
      for (const Store::Entry& entry : store.list(prefix))
        (entry.is_prefix ? prefixes : keys).push_back(join_path(prefix, entry.name));
      const auto found = size_of(store, keys, deadline, threads);
      if (!found) return std::nullopt;
      bytes += *found;
      if (Clock::now() > deadline) return std::nullopt;
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace batchfs
