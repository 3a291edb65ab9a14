#include "tools/cli/samples.h"

#include <fmt/format.h>

#include "engine/base/log.h"
#include "engine/base/strings.h"
#include "engine/scan/sample_cache.h"
#include "engine/scan/sample_scan.h"
#include "engine/scan/source_versions.h"
#include "engine/view/samples/missing.h"
#include "tools/cli/progress.h"
#include "tools/cli/view_memory.h"

namespace batchfs {

namespace {

SampleCache cache_of(const StoreOptions& options) {
  return SampleCache(options.config.cache_dir.empty() ? user_cache_directory()
                                                      : options.config.cache_dir);
}

SourceVersions versions_of(const View& view, const StoreOptions& options) {
  return SourceVersions(source_arrays(view), {options.threads});
}

/// A view of a mixture may be of another store than the command's.
std::string key_of(const View& view, const OpenedStore& opened, const SourceVersions& versions,
                   bool is_component) {
  const auto& variables = view.variables();
  const Store& store =
      is_component && !variables.empty() ? variables.front()->array->store() : *opened.store;
  return sample_key(store, opened.snapshot_id(), view, versions.digests());
}

/// Null if they are not in the cache.
std::shared_ptr<const View> cached(const View& view, const SampleCache& cache,
                                   const std::string& key) {
  const auto index = cache.find(key, scan_of(view).windows);
  return index != nullptr ? with_samples(view, index) : nullptr;
}

/// One view with its samples, from a scan.
std::shared_ptr<const View> scanned(const std::shared_ptr<const View>& view,
                                    const OpenedStore& opened, const StoreOptions& options,
                                    bool is_component, Engine& engine, Log& log) {
  const SampleCache cache = cache_of(options);
  const SourceVersions versions = versions_of(*view, options);
  const std::string key = key_of(*view, opened, versions, is_component);
  if (const auto known = cached(*view, cache, key)) return known;
  std::shared_ptr<const SampleIndex> index;
  {
    Progress progress("looking for missing values");
    index = std::make_shared<const SampleIndex>(scan_samples(
        engine, *view, [&](std::int64_t done, std::int64_t all) { progress.show(done, all); }));
  }
  versions.confirm();
  log.info(fmt::format("view {}: {} of {} windows have no missing values", view->name(),
                       format_count(static_cast<std::uint64_t>(index->samples())),
                       format_count(static_cast<std::uint64_t>(index->windows()))));
  try {
    cache.keep(key, *index);
  } catch (const Error& error) {
    log.warning(
        std::string(
            "the list of windows without missing values cannot be stored for the next mount: ") +
        error.what());
  }
  return with_samples(*view, index);
}

/// Null when the cache does not have them.
std::shared_ptr<const View> known(const View& view, const OpenedStore& opened,
                                  const StoreOptions& options, bool is_component) {
  const std::string key = key_of(view, opened, versions_of(view, options), is_component);
  return cached(view, cache_of(options), key);
}

}  // namespace

std::shared_ptr<const View> known_samples(const std::shared_ptr<const View>& view,
                                          const OpenedStore& opened, const StoreOptions& options) {
  if (!view->needs_scan()) return view;
  std::vector<std::shared_ptr<const View>> components = view->components();
  if (components.empty()) return known(*view, opened, options, false);
  for (auto& component : components) {
    if (!component->needs_scan()) continue;
    component = known(*component, opened, options, true);
    if (component == nullptr) return nullptr;
  }
  return with_components(*view, std::move(components));
}

std::shared_ptr<const View> find_samples(const std::shared_ptr<const View>& view,
                                         const OpenedStore& opened, const StoreOptions& options,
                                         Engine& engine, Log& log) {
  if (!view->needs_scan()) return view;
  std::vector<std::shared_ptr<const View>> components = view->components();
  if (components.empty()) return scanned(view, opened, options, false, engine, log);
  for (auto& component : components)
    if (component->needs_scan()) component = scanned(component, opened, options, true, engine, log);
  return with_components(*view, std::move(components));
}

std::shared_ptr<const View> find_samples(const OpenedView& opened, const StoreOptions& options) {
  if (!opened.view->needs_scan()) return opened.view;
  Log log;
  Engine engine({.threads = options.threads,
                 .kind = Executor::Threads::own,  // the process may be a user's
                 .memory = opened.opened.budget,
                 .prefetch = false,
                 .store = opened.opened.store,
                 .held = held_memory(opened.opened, {opened.view})},
                log);
  for (const auto& store : opened.opened.stores()) engine.add_store(store);
  return find_samples(opened.view, opened.opened, options, engine, log);
}

}  // namespace batchfs
