#include "tools/service/state_source.h"

#include <cerrno>
#include <filesystem>

#include <sys/stat.h>

#include "gpu/handoff/ask_state.h"
#include "tools/cli/store_options.h"
#include "tools/service/mounts.h"

namespace batchfs {

namespace {

const char* file_of(handoff::StateText what) {
  switch (what) {
    case handoff::StateText::status:
      return "status.json";
    case handoff::StateText::metrics:
      return "metrics";
    case handoff::StateText::config:
      return "config.json";
    case handoff::StateText::trace:
      return "trace.json";
    case handoff::StateText::log:
      return "log";
  }
  return "";
}

bool is_socket_file(const std::string& path) {
  struct stat file;
  return ::stat(path.c_str(), &file) == 0 && S_ISSOCK(file.st_mode);
}

}  // namespace

StateSource::StateSource(const std::string& place) {
  // The list of mounts first: stat(2) of a mount that hangs does not return.
  struct stat link;
  std::string mount;
  try {
    mount = mount_path(place);
  } catch (const Error&) {
    // Its directory is missing, which is said below.
  }
  is_socket_ = (mount.empty() || !mounted_type(mount)) && is_socket_file(place);
  if (is_socket_) {
    path_ = std::filesystem::absolute(place).lexically_normal().string();
    return;
  }
  if ((mount.empty() || !mounted_type(mount)) && ::lstat(place.c_str(), &link) != 0 &&
      errno == ENOENT)
    throw Error(ErrorCode::not_found,
                "there is no mount and no socket; `batchfs mount` and `batchfs serve` make them",
                place);
  path_ = require_batchfs_mount(place);
}

std::string StateSource::where(handoff::StateText what) const {
  return is_socket_ ? path_ : path_ + "/.batchfs/" + file_of(what);
}

std::string StateSource::text(handoff::StateText what) const {
  return is_socket_ ? handoff::ask_state(path_, what) : read_text_file(where(what));
}

Json StateSource::json(handoff::StateText what) const {
  return parse_json(text(what), where(what));
}

bool StateSource::has_ended(const Error& error) const {
  return is_socket_ ? error.code() == ErrorCode::not_found : !mounted_type(path_);
}

void add_place(CLI::App& app, std::string& place) {
  app.add_option("DIR", place, "where a store is mounted, or the socket of `batchfs serve`")
      ->required()
      ->type_name("");
}

}  // namespace batchfs
