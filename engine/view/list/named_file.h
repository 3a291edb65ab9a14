#pragma once
// A file that a view names, read from its beginning to its end.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"

namespace batchfs {

class NamedFile {
 public:
  /// `path`: where it lies. Throws not_found, access_denied or io; invalid_argument for a path that
  /// is not a regular file.
  explicit NamedFile(std::string path);
  ~NamedFile();
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;

  /// Bytes, when it was opened.
  std::uint64_t size() const { return size_; }
  /// The next bytes; fewer than `out` has only at the end.
  std::size_t read(std::span<std::byte> out);
  /// The digest of all bytes that were read: "xxh3:" and 32 hexadecimal digits.
  std::string digest() const;
  /// "the file 'samples.npy'".
  std::string where() const { return "the file '" + path_ + "'"; }
  [[nodiscard]] Error error(const std::string& why) const {
    return Error(ErrorCode::invalid_argument, why, where());
  }

 private:
  struct Hash;
  std::string path_;
  Descriptor descriptor_;
  std::uint64_t size_ = 0;
  std::unique_ptr<Hash> hash_;
};

}  // namespace batchfs
