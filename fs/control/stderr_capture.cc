#include "fs/control/stderr_capture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace batchfs {

StderrCapture::StderrCapture()
    : before_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)),
      kept_(::memfd_create("stderr", MFD_CLOEXEC)) {
  if (before_ >= 0 && kept_ >= 0) ::dup2(kept_, STDERR_FILENO);
}

StderrCapture::~StderrCapture() {
  if (before_ >= 0) ::dup2(before_, STDERR_FILENO);
  for (const int own : {before_, kept_})
    if (own >= 0) ::close(own);
}

std::string StderrCapture::text() const {
  std::string line(1000, '\0');
  const ssize_t size = ::pread(kept_, line.data(), line.size(), 0);
  line.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!line.empty() && line.back() == '\n') line.pop_back();
  for (char& c : line)
    if (c == '\n') c = ' ';
  return line;
}

}  // namespace batchfs
