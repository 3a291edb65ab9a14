#pragma once
// What `batchfs mount` was asked for.

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
  std::optional<StandardInput> input;  // what "-" is
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

/// Throws invalid_argument when what the mount reads or writes, the store or the cache, lies where
/// it is mounted, or the other way round: it would then wait for itself. So would a view: it is
/// read again when the daemon is started again.
void check_apart(const MountOptions& options);
/// The same of one more place that it reads.
void check_apart(const MountOptions& options, const char* what, const std::string& place);

/// Takes `-o name=value,...` as mount(8) and fstab(5) write it, where `\,` is a comma in a value:
/// the same names as the long options. What mount(8) itself understands (noauto, _netdev, x-...) is
/// passed over. Throws UsageError for an unknown name and for what a read-only mount cannot do.
void apply_mount_list(const std::string& list, MountOptions& options);

/// What of the list that mount(8) gives to its helper is batchfs's own: without what mount(8)
/// understands itself, and without `rw`, which mount(8) says when the user said nothing. `sloppy`
/// leaves unknown names out, too.
std::string own_mount_options(const std::string& list, bool sloppy);

}  // namespace batchfs
