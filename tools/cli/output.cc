#include "tools/cli/output.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "engine/base/error.h"
#include "tools/cli/command.h"

namespace batchfs {

namespace {
constexpr std::size_t kBuffered = 64 << 10;
}

void Output::expect_binary(const std::string& instead) const {
  if (::isatty(fd_) == 1)
    throw UsageError{"this is for programs, not for a terminal: write it to a file (> FILE), or " +
                     instead};
}

void Output::write(std::string_view text) {
  if (buffer_.size() + text.size() > kBuffered) {
    write_through(buffer_);
    buffer_.clear();
    if (text.size() > kBuffered) return write_through(text);
  }
  buffer_ += text;
}

void Output::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void Output::finish() {
  write_through(buffer_);
  buffer_.clear();
}

void Output::write_through(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EPIPE) {
      throw ReaderWentAway{};
    } else if (errno != EINTR) {
      throw Error(ErrorCode::io, std::string("cannot write the result: ") + std::strerror(errno),
                  "standard output");
    }
  }
}

}  // namespace batchfs
