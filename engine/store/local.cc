#include "engine/store/local.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

namespace batchfs {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

class LocalStore final : public Store {
 public:
  explicit LocalStore(std::filesystem::path root)
      : root_(std::move(root)), directory_(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (directory_.get() < 0) {
      if (errno == EACCES)
        throw Error(ErrorCode::access_denied, "the directory may not be read", root_.string());
      if (errno == ENOTDIR)
        throw Error(ErrorCode::not_found, "this is a file; a Zarr store is a directory", root_.string());
      if (errno == ENOENT) throw Error(ErrorCode::not_found, "no such directory", root_.string());
      throw Error(ErrorCode::io, std::strerror(errno), root_.string());
    }
  }

  std::string url() const override { return root_.string(); }
  bool is_local() const override { return true; }

  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    const Descriptor file(open(key));
    const std::optional<std::uint64_t> total = size_of(file, key);
    if (!total) return std::nullopt;
    if (range.from_end) range.offset = *total - std::min(range.length, *total);
    const std::uint64_t available = *total - std::min(range.offset, *total);
    Buffer bytes(std::min(range.length, available));
    bytes.truncate(read_fully(file, key, range.offset, bytes.span()));
    return bytes;
  }

  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override {
    const Descriptor file(open(key));
    const std::optional<std::uint64_t> total = size_of(file, key);
    if (!total) return std::nullopt;
    return PartRead{read_fully(file, key, offset, out), *total};
  }

  std::optional<std::uint64_t> size(const std::string& key) override {
    return size_of(Descriptor(open(key)), key);
  }

  std::vector<Entry> list(const std::string& prefix) override {
    if (!prefix.empty()) check_key(prefix);
    std::vector<Entry> entries;
    const auto opened = open_directory(directory_.get(), prefix.empty() ? "." : prefix.c_str());
    if (opened == nullptr) {
      if (errno == ENOENT || errno == ENOTDIR) return entries;
      throw failure("listing", prefix);
    }
    DIR* const stream = opened.get();
    const int fd = ::dirfd(stream);
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(stream);
      if (entry == nullptr) {
        if (errno != 0) throw failure("listing", prefix);
        break;
      }
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      bool is_directory = entry->d_type == DT_DIR;
      if (entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) {
        struct stat info {};
        is_directory = ::fstatat(fd, entry->d_name, &info, 0) == 0 && S_ISDIR(info.st_mode) && !is_at_or_above(prefix, info);
      }
      entries.push_back({name, is_directory});
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.name < b.name; });
    return entries;
  }

  std::optional<std::uint64_t> state(const std::string& prefix) override {
    if (!prefix.empty()) check_key(prefix);
    return state_of(directory_.get(), prefix.empty() ? "." : prefix.c_str(), 0);
  }

 private:
  using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

  /// Is this directory the one at `prefix`, or one that it lies in? Then a link to it there is a circle.
  bool is_at_or_above(const std::string& prefix, const struct stat& directory) const {
    std::string above = ".";
    for (std::size_t end = 0;;) {
      struct stat info {};
      if (::fstatat(directory_.get(), above.c_str(), &info, 0) == 0 && info.st_dev == directory.st_dev &&
          info.st_ino == directory.st_ino)
        return true;
      if (end >= prefix.size()) return false;
      end = std::min(prefix.find('/', end + 1), prefix.size());
      above = prefix.substr(0, end);
    }
  }

  /// Null, with errno, when that is not possible.
  static Directory open_directory(int parent, const char* name) {
    const int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* const stream = fd < 0 ? nullptr : ::fdopendir(fd);
    if (stream == nullptr && fd >= 0) ::close(fd);
    return {stream, ::closedir};
  }

  /// The sum of a hash for every file, since a directory has no order. nullopt for what cannot be read, and for
  /// links to directories, which may be circles.
  static std::optional<std::uint64_t> state_of(int parent, const char* name, int depth) {
    constexpr int kDeepest = 64;
    const Directory directory = open_directory(parent, name);
    if (directory == nullptr) return errno == ENOENT ? std::optional<std::uint64_t>(0) : std::nullopt;
    if (depth == kDeepest) return std::nullopt;
    const int fd = ::dirfd(directory.get());
    std::uint64_t sum = 0;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(directory.get());
      if (entry == nullptr) return errno == 0 ? std::optional(sum) : std::nullopt;
      const std::string_view entry_name = entry->d_name;
      if (entry_name == "." || entry_name == "..") continue;
      struct stat info {};
      if (::fstatat(fd, entry->d_name, &info, 0) != 0) return std::nullopt;
      std::uint64_t facts[4] = {static_cast<std::uint64_t>(info.st_size), static_cast<std::uint64_t>(info.st_mtim.tv_sec),
                                static_cast<std::uint64_t>(info.st_mtim.tv_nsec), 0};
      if (S_ISDIR(info.st_mode)) {
        if (entry->d_type == DT_LNK) return std::nullopt;
        const std::optional<std::uint64_t> below = state_of(fd, entry->d_name, depth + 1);
        if (!below) return std::nullopt;
        std::fill(std::begin(facts), std::end(facts), *below);  // its own size and time say nothing more
      }
      sum += XXH3_64bits_withSeed(facts, sizeof facts, XXH3_64bits(entry_name.data(), entry_name.size()));
    }
  }

  int open(const std::string& key) const {
    check_key(key);
    // Not blocking: a FIFO among the files would wait for a writer.
    return ::openat(directory_.get(), key.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  }

  /// nullopt when there is no such object: absent, below a file, or a directory.
  std::optional<std::uint64_t> size_of(const Descriptor& file, const std::string& key) const {
    if (file.get() < 0) {
      if (errno != ENOENT && errno != ENOTDIR) throw failure("opening", key);
      check_links(key);
      return std::nullopt;
    }
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) throw failure("reading", key);
    if (S_ISDIR(info.st_mode)) return std::nullopt;
    if (!S_ISREG(info.st_mode)) throw Error(ErrorCode::io, "not a regular file", key);
    return static_cast<std::uint64_t>(info.st_size);
  }

  /// Throws when a link leads nowhere: what it stands for is not missing, but cannot be reached.
  void check_links(const std::string& key) const {
    for (std::size_t end = 0; end < key.size();) {
      end = std::min(key.find('/', end + 1), key.size());
      const std::string path = key.substr(0, end);
      struct stat link {}, target {};
      if (::fstatat(directory_.get(), path.c_str(), &link, AT_SYMLINK_NOFOLLOW) != 0) return;
      if (S_ISLNK(link.st_mode) && ::fstatat(directory_.get(), path.c_str(), &target, 0) != 0)
        throw Error(ErrorCode::io, "a symbolic link leads to what is not there", (root_ / path).string());
    }
  }

  std::size_t read_fully(const Descriptor& file, const std::string& key, std::uint64_t offset,
                         std::span<std::byte> out) const {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = ::pread(file.get(), out.data() + done, out.size() - done,
                                  static_cast<off_t>(offset + done));
      if (got < 0) {
        if (errno == EINTR) continue;
        throw failure("reading", key);
      }
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  Error failure(const char* what, const std::string& key) const {
    const ErrorCode code = errno == EACCES ? ErrorCode::access_denied : ErrorCode::io;
    return Error(code, std::string(what) + " failed: " + std::strerror(errno), (root_ / key).string());
  }

  const std::filesystem::path root_;
  const Descriptor directory_;
};

}  // namespace

std::shared_ptr<Store> open_local_store(const std::filesystem::path& root) {
  return std::make_shared<LocalStore>(root);
}

}  // namespace batchfs
