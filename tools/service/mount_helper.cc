#include "tools/service/mount_helper.h"

#include <cstdio>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "engine/base/error.h"
#include "tools/cli/command.h"
#include "tools/service/mount_options.h"
#include "tools/service/mounts.h"

namespace batchfs {

namespace {

constexpr int kMountSuccess = 0, kWrongMountUsage = 1, kMountFailure = 32;  // mount(8), EXIT STATUS

struct Request {
  std::string store, directory, mount_namespace, type;
  std::vector<std::string> lists;
  bool sloppy = false, fake = false, verbose = false, no_mtab = false;
};

void describe(CLI::App& app, Request& request) {
  app.name("mount.batchfs");
  app.description("Mounts a Zarr store; mount(8) calls it for the file system type batchfs.");
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("-V,--version", "mount.batchfs " BATCHFS_VERSION, "print the version");
  app.add_option("STORE", request.store, "the store")->required()->type_name("");
  app.add_option("DIR", request.directory, "where to mount it: an existing directory")
      ->required()
      ->type_name("");
  app.add_option("-o", request.lists, "the options of `batchfs mount`, and those of mount(8)")
      ->type_name("NAME=VALUE,...")
      ->allow_extra_args(false);
  app.add_flag("-f", request.fake, "only check the options, mount nothing");
  app.add_flag("-s", request.sloppy, "pass over unknown options");
  app.add_flag("-v", request.verbose, "say what was done");
  app.add_flag("-n", request.no_mtab, "nothing: there is no mtab");
  app.add_option("-t", request.type, "nothing: the type is batchfs")->type_name("TYPE");
  app.add_option("-N", request.mount_namespace, "not supported")->type_name("NAMESPACE");
  app.footer(
      "Example:\n  mount -t batchfs s3://bucket/era5.zarr /mnt/era5 -o "
      "view=/etc/batchfs/train.json,_netdev");
}

/// A mount table that is worked through twice, by `mount -a`, must not pile mounts on each other.
void check_directory(const std::string& directory) {
  end_dead_mount(directory);
  if (mounted_type(mount_path(directory)) == "fuse.batchfs") {
    throw Error(ErrorCode::invalid_argument, "already mounted; run umount first", directory);
  }
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    throw Error(ErrorCode::not_found, "no such directory; make it with mkdir",
                "the mount point '" + directory + "'");
  }
}

}  // namespace

bool is_mount_helper(std::string_view program) {
  const std::string_view name = program.substr(program.rfind('/') + 1);  // npos + 1 is 0
  return name == "mount.batchfs" || name == "mount.fuse.batchfs";
}

int run_mount_helper(std::vector<std::string> arguments,
                     const std::function<int(std::vector<std::string> arguments)>& batchfs) {
  Request request;
  CLI::App app;
  describe(app, request);
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(arguments);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    throw UsageError{error.what()};
  }
  if (!request.mount_namespace.empty())
    throw UsageError{"-N: mounting in another namespace is not supported"};

  std::vector<std::string> command = {"mount"};
  MountOptions checked;
  for (const std::string& list : request.lists) {
    const std::string own = own_mount_options(list, request.sloppy);
    apply_mount_list(own, checked);
    command.insert(command.end(), {"-o", own});
  }
  check_directory(request.directory);
  if (request.fake) return kMountSuccess;
  command.insert(command.end(), {"--", request.store, request.directory});
  if (const int code = batchfs(command); code != kMountSuccess)
    return code == 2 ? kWrongMountUsage : kMountFailure;
  if (request.verbose) std::printf("mount.batchfs: mounted at %s\n", request.directory.c_str());
  return kMountSuccess;
}

}  // namespace batchfs
