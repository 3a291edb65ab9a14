#define FUSE_USE_VERSION 314
#include "fs/fuse/new_session.h"

#include <cerrno>
#include <cstring>
#include <optional>

#include <fuse3/fuse_lowlevel.h>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/system_error.h"
#include "fs/control/stderr_capture.h"

namespace batchfs {

namespace {

/// Describes the limit, with advice, that an error text of libfuse or of its helper reports; nullopt
/// if the text reports none.
std::optional<std::string> limit_in(const std::string& text) {
  for (const int error : {EMFILE, ENFILE})
    if (text.find(std::strerror(error)) != std::string::npos) return describe_system_error(error);
  if (text.find(std::strerror(EAGAIN)) != std::string::npos) return describe_thread_limit();
  return std::nullopt;
}

}  // namespace

std::string fuse_mount_options(const std::string& source, bool allow_other) {
  std::string options = "ro,nosuid,nodev,default_permissions,subtype=batchfs,fsname=";
  for (const char c : source) {
    if (c == ',' || c == '\\') options += '\\';
    options += c;
  }
  if (allow_other) options += ",allow_other";
  return options;
}

fuse_session* new_fuse_session(const NewSession& options, const fuse_lowlevel_ops& operations,
                               void* user, const FuseLog& messages) {
  const std::string mount_options = fuse_mount_options(options.source, options.allow_other);
  fuse_args arguments{0, nullptr, 0};
  bool complete = true;
  for (const char* argument : {"batchfs", "-o", mount_options.c_str()})
    complete = complete && fuse_opt_add_arg(&arguments, argument) == 0;
  fuse_session* session = nullptr;
  if (complete) session = fuse_session_new(&arguments, &operations, sizeof operations, user);
  fuse_opt_free_args(&arguments);
  if (session == nullptr)
    throw Error(ErrorCode::internal, "setting up FUSE failed: " + messages.errors());
  // libfuse takes the name of an open descriptor for a session that others have mounted.
  const std::string mountpoint =
      options.taken_over < 0 ? options.mountpoint : fmt::format("/dev/fd/{}", options.taken_over);
  std::string refused;
  {
    const StderrCapture told;
    if (fuse_session_mount(session, mountpoint.c_str()) != 0) {
      std::string why = told.text();
      if (const std::string errors = messages.errors(); !errors.empty())
        why += (why.empty() ? "" : "; ") + errors;
      refused = limit_in(why).value_or((why.empty() ? "the kernel refused the mount" : why) +
                                       "; `batchfs doctor` says what is missing");
    }
  }
  if (refused.empty()) return session;
  fuse_session_destroy(session);
  throw Error(ErrorCode::access_denied, refused, "the mount point '" + options.mountpoint + "'");
}

}  // namespace batchfs
