// doctor: can the store be reached, and how long does it take? Is a mount well?

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "engine/base/answer_within.h"
#include "engine/base/strings.h"
#include "engine/store/place.h"
#include "engine/zarr/hierarchy.h"
#include "tools/cli/given_options.h"
#include "tools/cli/text.h"
#include "tools/doctor/checks.h"
#include "tools/monitor/activity.h"
#include "tools/monitor/top_screen.h"
#include "tools/service/mounts.h"

namespace batchfs {

namespace {

constexpr double kSlow = 0.3;  // seconds for a small object: batches must be made far ahead
constexpr std::chrono::seconds kAnswerTimeout{5};  // a mount answers at once or not at all

class Watch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

 private:
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

/// Median time to read a small object that stores usually have; nullopt if this store has none of
/// them.
std::optional<double> usual_latency(Store& store) {
  for (const char* key : {"zarr.json", ".zmetadata", ".zgroup", ".zattrs", ".zarray"}) {
    if (!store.read(key)) continue;
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) {
      const Watch watch;
      store.read(key);
      times.push_back(watch.seconds());
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }
  return std::nullopt;
}

/// Is the store in a cloud that asks for credentials?
bool is_cloud(const std::string& store) {
  return store.find("s3://") != std::string::npos || store.find("gs://") != std::string::npos ||
         store.find("az://") != std::string::npos;
}

/// Reads a text of a mount. Throws after a timeout if nobody answers.
std::string read_soon(const std::string& path) {
  if (auto text = answer_within(kAnswerTimeout, [path] { return read_text_file(path); }))
    return *std::move(text);
  throw Error(ErrorCode::timed_out,
              fmt::format("no answer within {} seconds", kAnswerTimeout.count()), path);
}

}  // namespace

std::string next_step(const Error& error, const std::string& store, const std::string& damaged) {
  const bool remote = store.find("://") != std::string::npos;
  switch (error.code()) {
    case ErrorCode::not_found:
      return remote
                 ? "check the URL; a prefix of a bucket must hold zarr.json, .zgroup or .zmetadata"
                 : "check the path; a store is the directory that holds zarr.json or .zgroup";
    case ErrorCode::access_denied:
      if (store.find("s3://") != std::string::npos)
        return "choose credentials with --profile or AWS_PROFILE, or --anon for public data";
      if (store.find("gs://") != std::string::npos)
        return "run `gcloud auth application-default login`, or use --anon for public data";
      if (store.find("az://") != std::string::npos)
        return "set AZURE_STORAGE_ACCOUNT and a key or a token, or use --anon for public data";
      return "read it as a user who may: `ls -l` shows who that is";
    case ErrorCode::timed_out:
    case ErrorCode::io:
      return remote ? "check the network and HTTPS_PROXY; --endpoint for a server of your own; "
                      "--timeout and --retries for a slow one"
                    : "check the disk: `dmesg` says what it reports";
    case ErrorCode::no_memory:
      return "give more with --memory";
    case ErrorCode::stale:
      return "the store is being written; try again when that is done";
    default:
      return damaged;
  }
}

Checks check_store(const StoreOptions& named) {
  using enum Check::State;
  Checks checks;
  StoreOptions options = named;
  try {
    options.store = usual_place(named.store);
    const Watch watch;
    const OpenedStore opened = open_zarr(options);
    const std::string what =
        fmt::format("{}: Zarr format {}, {} arrays, opened in {}", printable(opened.store->url()),
                    opened.hierarchy->zarr_format, opened.hierarchy->arrays.size(),
                    duration_text(watch.seconds()));
    checks.push_back({ok, "store", what, ""});
    std::string refused;
    for (const auto& [path, array] : opened.hierarchy->arrays)
      if (!array.unsupported.empty() && refused.empty())
        refused = (path.empty() ? "/" : path) + ": " + array.unsupported;
    if (!refused.empty())
      checks.push_back({note, "arrays", "not every array can be read: " + printable(refused),
                        "`batchfs inspect` lists them"});
    if (const auto latency = usual_latency(*opened.store)) {
      const bool slow = *latency > kSlow;
      checks.push_back({slow ? note : ok, "latency",
                        duration_text(*latency) + " for a small object",
                        slow ? "use --cache-dir, or a machine near the store" : ""});
    }
    if (is_cloud(options.store))
      checks.push_back({ok, "credentials",
                        options.config.anon ? "none are used (--anon)" : "the store accepts them",
                        ""});
    for (const Checks& more : {check_caches(options), check_reading(opened, options)})
      checks.insert(checks.end(), more.begin(), more.end());
  } catch (const Error& error) {
    const bool refused = error.code() == ErrorCode::access_denied && is_cloud(options.store);
    checks.push_back({problem, refused ? "credentials" : "store", printable(error.what()),
                      next_step(error, options.store)});
  }
  return checks;
}

Checks check_mount(const std::string& directory) {
  using enum Check::State;
  try {
    const std::string path = mount_path(directory) + "/.batchfs/status.json";
    const Json status = parse_json(read_soon(path), path);
    const Activity a = activity(nullptr, status);
    Checks checks{{ok, "mount",
                   fmt::format("answers; up {}, {} of {} in use", duration_text(a.uptime),
                               format_size(a.memory_used), format_size(a.memory_budget)),
                   ""}};
    if (a.errors > 0)
      checks.push_back({note, "errors", fmt::format("{} reads failed", format_count(a.errors)),
                        "see " + printable(directory) + "/.batchfs/log"});
    return checks;
  } catch (const Error& error) {
    return {{problem, "mount", "it does not answer: " + printable(error.why()),
             "end it with `batchfs umount --lazy " + printable(shell_word(directory)) +
                 "` and mount again"}};
  }
}

}  // namespace batchfs
