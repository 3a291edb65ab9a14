// batchfs umount: ends a mount, or says at once why it cannot.

#include "engine/base/error.h"
#include "fs/unmount.h"
#include "tools/command.h"
#include "tools/mounts.h"

namespace batchfs {

namespace {

struct Options {
  std::string directory;
  bool lazy = false;
};

}  // namespace

Run setup_umount(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("DIR", options->directory, "where it is mounted")->required()->type_name("");
  app.add_flag("--lazy", options->lazy,
               "also with programs that still read it: the name goes now, the mount when they are done");
  return [options](Output&) { unmount(require_batchfs_mount(options->directory), options->lazy); };
}

}  // namespace batchfs
