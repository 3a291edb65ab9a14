#include "tools/service/mount_options.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "engine/base/json.h"
#include "engine/store/place.h"
#include "tools/cli/command.h"

namespace batchfs {

namespace {

/// Options of mount(8) and fstab(5) that change nothing here: a mount is always ro, nosuid and
/// nodev.
constexpr std::string_view kPassedOver[] = {
    "defaults",   "ro",         "nosuid",        "nodev",       "noexec",      "noatime",
    "nodiratime", "relatime",   "auto",          "noauto",      "user",        "users",
    "nouser",     "owner",      "group",         "_netdev",     "nofail",      "dev",
    "suid",       "exec",       "async",         "sync",        "dirsync",     "atime",
    "diratime",   "norelatime", "nostrictatime", "strictatime", "lazytime",    "nolazytime",
    "iversion",   "noiversion", "mand",          "nomand",      "nosymfollow", "silent",
    "loud",       "noowner",    "nogroup",       "nousers"};

bool is_passed_over(const std::string& name) {
  return name.starts_with("x-") || name.starts_with("X-") || name == "comment" ||
         std::find(std::begin(kPassedOver), std::end(kPassedOver), name) != std::end(kPassedOver);
}

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> items(1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '\\' && i + 1 < list.size() && (list[i + 1] == ',' || list[i + 1] == '\\')) {
      items.back() += list[++i];
    } else if (list[i] == ',') {
      items.emplace_back();
    } else {
      items.back() += list[i];
    }
  }
  return items;
}

std::string name_of(const std::string& item) { return item.substr(0, item.find('=')); }

std::vector<std::string> long_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

}  // namespace

void add_mount_options(CLI::App& app, MountOptions& options) {
  app.add_option("--view", options.views,
                 "show the batches of this view; - reads it from standard input; may be given "
                 "several times")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_flag("-f,--foreground", options.foreground,
               "stay in the foreground and log to standard error");
  app.add_flag("--no-passthrough", options.no_passthrough,
               "serve all reads from batchfs, even where the kernel could read batches itself");
  app.add_flag(
      "--allow-other,--allow_other", options.allow_other,
      "let other users read the mount (ordinary users: needs user_allow_other in /etc/fuse.conf)");
  app.add_flag("--no-supervisor,--no_supervisor", options.no_supervisor,
               "when the daemon dies, end the mount instead of starting the daemon again");
  app.add_option("--hang-timeout,--hang_timeout", options.hang_timeout,
                 "replace the daemon when it has not answered for this long (default 30; 0: never)")
      ->check(CLI::Range(0.0, 1e6).description(""))
      ->type_name("SECONDS");
  app.add_flag("--replace", options.replace,
               "take over a live mount of the same store and views while programs read it");
  add_time_options(app, options.time);
  add_refresh_option(app, options.time);
  add_engine_options(app, options.store);
  add_other_stores(app, options.store);
  add_gpu_options(app, options.gpu);
}

void apply_mount_list(const std::string& list, MountOptions& options) {
  CLI::App app;
  app.set_help_flag();
  add_mount_options(app, options);
  const std::vector<std::string> names = long_names(app);
  for (const std::string& item : split_list(list)) {
    const std::string name = name_of(item);
    if (item.empty() || is_passed_over(name)) continue;
    if (name == "rw") throw UsageError{"-o rw: a mount is read-only, leave it out"};
    if (name == "remount")
      throw UsageError{"-o remount: a mount cannot be changed; umount it and mount it again"};
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw UsageError{"-o has no option '" + name + "'" + did_you_mean(name, names)};
    }
    // A second parse replaces the values of an option that may be repeated.
    const std::vector<std::string> views = std::exchange(options.views, {});
    try {
      app.clear();
      app.parse(std::vector<std::string>{"--" + item});
    } catch (const CLI::ParseError& error) {
      throw UsageError{"-o " + item + ": " + error.what()};
    }
    options.views.insert(options.views.begin(), views.begin(), views.end());
  }
}

std::string own_mount_options(const std::string& list, bool sloppy) {
  CLI::App app;
  app.set_help_flag();
  MountOptions unused;
  add_mount_options(app, unused);
  const std::vector<std::string> names = long_names(app);
  std::string own;
  for (const std::string& item : split_list(list)) {
    const std::string name = name_of(item);
    const bool unknown =
        name != "remount" && std::find(names.begin(), names.end(), name) == names.end();
    if (item.empty() || is_passed_over(name) || name == "rw" || (sloppy && unknown)) continue;
    if (!own.empty()) own += ',';
    for (const char c : item) {
      if (c == ',' || c == '\\') own += '\\';
      own += c;
    }
  }
  return own;
}

namespace {

/// Is `path` the folder, or below it?
bool is_in(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const auto [rest, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return rest == folder.end();
}

/// "/a/b" with links followed, as far as it exists; nullopt unless it is a path. A path that leads
/// into `mount` by its name is not followed: the mount itself might have to resolve the links.
std::optional<std::filesystem::path> local_path(std::string place,
                                                const std::filesystem::path& mount) {
  place = split_kind(usual_place(place)).place;
  if (place.empty() || place.find("://") != std::string::npos) return std::nullopt;
  if (const auto named = std::filesystem::absolute(place).lexically_normal(); is_in(named, mount))
    return named;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::weakly_canonical(place, error);
  return error ? std::nullopt : std::optional(path);
}

}  // namespace

void check_apart(const MountOptions& options, const char* what, const std::string& place) {
  const std::filesystem::path mount = options.directory;
  const auto path = local_path(place, mount);
  if (!path) return;
  if (is_in(*path, mount))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} lies in the directory of the mount, which would then read from "
                            "itself; mount elsewhere",
                            what),
                path->string());
  if (is_in(mount, *path))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "the directory of the mount lies in {}, and the mount would then read from itself; "
            "mount elsewhere",
            what),
        mount.string());
}

void check_apart(const MountOptions& options) {
  check_apart(options, "the store", options.store.store);
  for (const StoreOptions::Named& other : options.store.others)
    check_apart(options, "a store", other.url);
  check_apart(options, "the cache directory", options.store.config.cache_dir);
  for (const std::string& view : options.views)
    if (view != "-") check_apart(options, "a view", view);
}

}  // namespace batchfs
