// doctor: checks that the shared caches of --via answer with the store's objects.

#include <fmt/format.h>

#include "engine/store/cloud/cache_probe.h"
#include "tools/cli/text.h"
#include "tools/doctor/checks.h"

namespace batchfs {

namespace {

Check describe_cache(const CacheProbe& probe) {
  using enum Check::State;
  const auto check = [&probe](Check::State state, const std::string& found,
                              const std::string& next) {
    return Check{state, "cache", printable(probe.cache) + ": " + printable(found), next};
  };
  if (probe.object.empty())
    return check(note, "not tried, since the store has no small object to ask for", "");
  if (probe.status == 0)
    return check(problem, probe.error,
                 "start it, or leave it out of --via; without it, reads go to the store");
  if (probe.status == 403 || probe.status == 404)
    return check(problem, fmt::format("it refuses the store's objects (status {})", probe.status),
                 fmt::format("allow the server {} in its configuration; see "
                             "tools/packaging/cache/nginx.conf",
                             printable(probe.server)));
  if (probe.status != 200)
    return check(problem, fmt::format("it answers with status {}", probe.status), "see its log");
  if (probe.is_older)
    return check(
        note,
        fmt::format("it has an older copy of '{}', which was replaced in the store", probe.object),
        "--cache-trust would use it; without, batchfs compares versions");
  if (!probe.is_same)
    return check(problem,
                 fmt::format("its '{}' is not the store's: it is not a cache of it", probe.object),
                 "check its URL, and `curl` it");
  const std::string answers = fmt::format("answers in {}", duration_text(probe.seconds));
  if (!probe.has_version)
    return check(note, answers + ", but the store names no versions, without which it is not used",
                 "give --cache-trust if the store's objects are never replaced");
  if (probe.hit == false)
    return check(note, answers + ", but does not keep objects (X-Cache)",
                 "check proxy_cache and the free space of its disk");
  return check(ok, answers + " with the store's objects", "");
}

}  // namespace

Checks check_caches(const StoreOptions& options) {
  Checks checks;
  for (const CacheProbe& probe : probe_caches(options.store, options.config))
    checks.push_back(describe_cache(probe));
  return checks;
}

}  // namespace batchfs
