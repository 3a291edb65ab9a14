// batchfs umount: ends a mount, or reports at once why it cannot.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "fs/fuse/unmount.h"
#include "tools/cli/command.h"
#include "tools/service/mounts.h"

namespace batchfs {

namespace {

struct UmountOptions {
  std::string directory;
  bool lazy = false, dead = false;
};

/// A daemon that hangs must not keep its mount from being ended.
constexpr std::chrono::seconds kStatusTimeout{2};

/// A small file's text, empty if it cannot be read in time. A separate process reads it: a thread
/// that hangs in the mount would keep it in use.
std::string read_within(std::chrono::milliseconds patience, const std::string& path) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = ::fork();
  char block[4096];
  if (child == 0) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; file >= 0 && got > 0;) {
      got = ::read(file, block, sizeof block);
      if (got > 0 && ::write(ends[1], block, static_cast<std::size_t>(got)) != got) break;
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    pollfd answer{ends[0], POLLIN, 0};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (::poll(&answer, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) <= 0) break;
    const ssize_t got = ::read(ends[0], block, sizeof block);
    if (got <= 0) break;
    text.append(block, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  if (child > 0) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  return text;
}

/// Readers of the hand-off have no file of the mount open: the kernel would let it end. Throws io
/// where one of them holds batches.
void require_no_batches_held(const std::string& path) {
  const Json status =
      Json::parse(read_within(kStatusTimeout, path + "/.batchfs/status.json"), nullptr, false);
  if (status.is_discarded() || !status.contains("handoff")) return;
  const Json& now = status["handoff"];
  const std::uint64_t readers = now.value("readers", std::uint64_t{0}),
                      held = now.value("leases", std::uint64_t{0});
  if (held == 0) return;
  throw Error(
      ErrorCode::io,
      fmt::format("{} of the hand-off {} {}; close {}, or add --lazy to end the mount anyway",
                  readers == 1 ? "a reader" : fmt::format("{} readers", readers),
                  readers == 1 ? "holds" : "hold",
                  held == 1 ? "a batch" : fmt::format("{} batches", held),
                  readers == 1 ? "it" : "them"),
      path);
}

}  // namespace

CommandAction setup_umount(CLI::App& app) {
  const auto options = std::make_shared<UmountOptions>();
  app.add_option("DIR", options->directory, "where it is mounted")->required()->type_name("");
  app.add_flag("--lazy", options->lazy,
               "detach a mount that programs still read; it ends when they are done");
  app.add_flag("--dead", options->dead,
               "end it only if all its processes have died; otherwise do nothing");
  return [options](Output&) {
    if (options->dead) return end_dead_mount(options->directory);
    const std::string path = require_batchfs_mount(options->directory);
    if (!options->lazy) require_no_batches_held(path);
    unmount(path, options->lazy);
  };
}

}  // namespace batchfs
