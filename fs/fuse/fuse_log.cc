#define FUSE_USE_VERSION 314
#include "fs/fuse/fuse_log.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string_view>

#include <fuse3/fuse_log.h>

namespace batchfs {

namespace {

constexpr std::size_t kMaxErrors = 1000;  // bytes

/// libfuse calls a function that gets nothing of ours.
struct Receiver {
  std::mutex mutex;  // guards the members below
  Log* log = nullptr;
  std::string errors;
};
Receiver receiver;

/// noexcept: an exception must not pass through libfuse.
void receive(fuse_log_level level, const char* format, va_list arguments) noexcept {
  std::array<char, 512> text;
  std::vsnprintf(text.data(), text.size(), format, arguments);
  std::string_view line = text.data();
  while (line.ends_with('\n')) line.remove_suffix(1);
  if (line.starts_with("fuse: ")) line.remove_prefix(6);
  if (line.empty()) return;
  const std::lock_guard lock(receiver.mutex);
  if (receiver.log == nullptr) return;
  if (level > FUSE_LOG_WARNING) return receiver.log->debug(line);
  receiver.log->warning("libfuse: " + std::string(line));
  if (receiver.errors.size() + line.size() > kMaxErrors) return;
  if (!receiver.errors.empty()) receiver.errors += "; ";
  receiver.errors += line;
}

}  // namespace

FuseLog::FuseLog(Log& log) {
  const std::lock_guard lock(receiver.mutex);
  receiver.log = &log;
  receiver.errors.clear();
  fuse_set_log_func(receive);
}

FuseLog::~FuseLog() {
  const std::lock_guard lock(receiver.mutex);
  receiver.log = nullptr;
}

std::string FuseLog::errors() const {
  const std::lock_guard lock(receiver.mutex);
  return receiver.errors;
}

}  // namespace batchfs
