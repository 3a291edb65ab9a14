#include "engine/view/list/named_file.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "engine/base/system_error.h"

namespace batchfs {

namespace {

Error failure(int error, const std::string& where) {
  const ErrorCode code = error == ENOENT   ? ErrorCode::not_found
                         : error == EACCES ? ErrorCode::access_denied
                                           : ErrorCode::io;
  return Error(code, describe_system_error(error), where);
}

}  // namespace

struct NamedFile::Hash {
  XXH3_state_t* state = XXH3_createState();
  Hash() {
    if (state == nullptr || XXH3_128bits_reset(state) == XXH_ERROR) throw std::bad_alloc();
  }
  ~Hash() { XXH3_freeState(state); }
};

NamedFile::NamedFile(std::string path) : path_(std::move(path)), hash_(std::make_unique<Hash>()) {
  // Without O_NONBLOCK a named pipe would wait for a writer.
  descriptor_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (descriptor_.get() < 0 || ::fstat(descriptor_.get(), &status) != 0)
    throw failure(errno, where());
  if (!S_ISREG(status.st_mode)) throw error("not a regular file");
  size_ = static_cast<std::uint64_t>(status.st_size);
}

NamedFile::~NamedFile() = default;

std::size_t NamedFile::read(std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::read(descriptor_.get(), out.data() + done, out.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw failure(errno, where());
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  XXH3_128bits_update(hash_->state, out.data(), done);
  return done;
}

std::string NamedFile::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(hash_->state);
  return fmt::format("xxh3:{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace batchfs
