// batchfs umount: ends a mount, or says at once why it cannot.

#include "engine/base/error.h"
#include "fs/unmount.h"
#include "tools/command.h"
#include "tools/mounts.h"

namespace batchfs {

namespace {

struct Options {
  std::string directory;
  bool lazy = false, dead = false;
};

}  // namespace

Run setup_umount(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("DIR", options->directory, "where it is mounted")->required()->type_name("");
  app.add_flag("--lazy", options->lazy,
               "also with programs that still read it: the name goes now, the mount when they are done");
  app.add_flag("--dead", options->dead,
               "only if its processes have died and none takes over, as a service does; else do nothing");
  return [options](Output&) {
    if (options->dead) return end_dead_mount(options->directory);
    unmount(require_batchfs_mount(options->directory), options->lazy);
  };
}

}  // namespace batchfs
