#pragma once
// Options of `batchfs mount`.

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tools/cli/store_options.h"
#include "tools/service/serving.h"

namespace batchfs {

struct MountOptions {
  StoreOptions store;
  GpuOptions gpu;
  std::string directory;
  std::vector<std::string> views;      // files, and "-"
  std::optional<StandardInput> input;  // the text of "-"
  TimeOptions time;
  bool foreground = false;
  bool no_passthrough = false;
  bool allow_other = false;
  bool no_supervisor = false;
  bool replace = false;
  double hang_timeout = 30;  // seconds; 0: a daemon that hangs is left alone
};

/// Adds every option of `mount` but STORE, DIR and -o.
void add_mount_options(CLI::App& app, MountOptions& options);

/// Throws invalid_argument if a place that the mount reads or writes (the store, a view, the cache)
/// lies below the mount point, or the other way round: the mount would wait for itself. Views count
/// because a restarted daemon reads them again.
void check_apart(const MountOptions& options);
/// Checks one more place that the mount reads.
void check_apart(const MountOptions& options, const char* what, const std::string& place);

/// Applies `-o name=value,...` in the syntax of mount(8) and fstab(5), where `\,` is a comma in a
/// value: the names are those of the long options. Ignores options of mount(8) itself (noauto,
/// _netdev, x-...). Throws UsageError for an unknown name and for options that a read-only mount
/// cannot honour.
void apply_mount_list(const std::string& list, MountOptions& options);

/// Filters batchfs's own options from the list that mount(8) passes to its helper: leaves out
/// options of mount(8) itself, and `rw`, which mount(8) adds by default. With `sloppy`, leaves out
/// unknown names, too.
std::string own_mount_options(const std::string& list, bool sloppy);

}  // namespace batchfs
