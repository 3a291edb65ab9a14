#include "tools/cli/whole_file.h"

#include <cerrno>
#include <cstdio>

#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/system_error.h"

namespace batchfs {

void write_whole_file(const std::string& path, const std::string& text) {
  const std::string part = path + ".part-" + std::to_string(::getpid());
  const auto fail = [&](int error) {
    std::remove(part.c_str());
    return Error(error == EACCES ? ErrorCode::access_denied : ErrorCode::io,
                 describe_system_error(error), path);
  };
  std::FILE* file = std::fopen(part.c_str(), "we");
  if (file == nullptr) throw fail(errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int write_error = errno;
  if (std::fclose(file) != 0) throw fail(errno);
  if (!written) throw fail(write_error);
  if (std::rename(part.c_str(), path.c_str()) != 0) throw fail(errno);
}

}  // namespace batchfs
