#include "engine/store/local/local.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/base/system_error.h"
#include "engine/store/fingerprint.h"
#include "engine/store/local/beneath.h"
#include "engine/store/local/file_owner.h"

namespace batchfs {

namespace {

/// A file's time stamps are at most this much coarser than the clock: a tick of the slowest
/// kernels, twice; or, where no fraction of a second is stored, the two seconds of FAT.
constexpr std::int64_t kFine = 20'000'000, kCoarse = 2'000'000'000;  // nanoseconds
/// Looks at a file that keeps changing, before the read fails.
constexpr int kMaxLooks = 50;

std::int64_t nanoseconds(const struct timespec& time) {
  return time.tv_sec * INT64_C(1'000'000'000) + time.tv_nsec;
}

/// The version of a file for other processes and machines: numbers of devices and inodes last as
/// long as a mount only. No program can set back the time of the last change of a file's status, so
/// that it shows changes of files whose modification time was restored.
std::uint64_t lasting_version_of(const struct stat& file) {
  return lasting_digest(
      fmt::format("{} {} {}", file.st_size, nanoseconds(file.st_mtim), nanoseconds(file.st_ctim)));
}

/// The time until a further change is certain to change the version, too; 0 for a file that has
/// been unchanged for a while. A time stamp in the future is meaningless: another machine's clock
/// made it.
std::int64_t unsettled_nanoseconds(const struct stat& file) {
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);  // the clock that stamps files
  const std::int64_t granularity =
      file.st_mtim.tv_nsec == 0 && file.st_ctim.tv_nsec == 0 ? kCoarse : kFine;
  std::int64_t longest = 0;
  for (const std::int64_t stamp : {nanoseconds(file.st_mtim), nanoseconds(file.st_ctim)}) {
    const std::int64_t age = nanoseconds(now) - stamp;
    if (age > -granularity && age < granularity) longest = std::max(longest, granularity - age);
  }
  return longest;
}

void wait_for(std::int64_t nanoseconds) {
  struct timespec left {
    nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000
  };
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

class LocalStore final : public Store {
 public:
  LocalStore(std::filesystem::path root, LocalStoreOptions options)
      : root_(std::move(root)),
        versions_(std::move(options.versions)),
        beneath_(root_, options.follow_links ? Beneath::Links::anywhere : Beneath::Links::inside) {
    if (beneath_.descriptor() < 0) {
      if (errno == EACCES)
        throw Error(ErrorCode::access_denied, "the directory may not be read", root_.string());
      if (errno == ENOTDIR)
        throw Error(ErrorCode::not_found, "this is a file; a Zarr store is a directory",
                    root_.string());
      if (errno == ENOENT) throw Error(ErrorCode::not_found, "no such directory", root_.string());
      throw Error(ErrorCode::io, describe_system_error(errno), root_.string());
    }
    owner_ = FileOwner::of(beneath_.descriptor());
  }

  std::string url() const override { return root_.string(); }
  bool is_local() const override { return true; }

  std::vector<Counter> counters() const override { return versions_.counters(); }

  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    return read_and_stat(key, range, nullptr);
  }

  void read_version_async(const std::string& key, ByteRange range, const std::string&,
                          VersionedDone done) override {
    VersionedRead read;
    try {
      struct stat info {};
      read.bytes = read_and_stat(key, range, &info);
      if (read.bytes) read.modified = info.st_mtim.tv_sec + (info.st_mtim.tv_nsec > 0 ? 1 : 0);
    } catch (...) {
      return done(std::current_exception());
    }
    done(std::move(read));
  }

  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override {
    std::size_t got = 0;
    const auto total = with_object(key, [&](const Descriptor& file, std::uint64_t) {
      got = read_fully(file, key, offset, out);
    });
    return total ? std::optional<PartRead>({got, *total}) : std::nullopt;
  }

  std::optional<std::uint64_t> size(const std::string& key) override {
    return with_object(key, [](const Descriptor&, std::uint64_t) {});
  }

  std::optional<std::uint64_t> state(const std::string& key) override {
    struct stat info {};
    const auto size = with_object(key, [&](const Descriptor& file, std::uint64_t) {
      if (::fstat(file.get(), &info) != 0) throw failure("reading", key);
    });
    return size ? lasting_version_of(info) : 0;
  }

  std::vector<Entry> list(const std::string& prefix) override {
    if (!prefix.empty()) check_key(prefix);
    const auto as_owner = owner_.enter();
    std::vector<Entry> entries;
    ListingMemory memory;
    const auto opened = stream_of(beneath_.open(prefix.empty() ? "." : prefix, kDirectory));
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
        try {
          const auto info = status_of(fd, prefix, name);
          is_directory = info && S_ISDIR(info->st_mode) && !is_at_or_above(prefix, *info);
        } catch (const Error& error) {
          // It leads outside: an error for its readers, and not for its neighbours.
          if (error.code() != ErrorCode::access_denied) throw;
          is_directory = true;
        }
      }
      entries.push_back({name, is_directory});
      memory.add(entries.back(), (root_ / prefix).string());
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.name < b.name; });
    return entries;
  }

 private:
  using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;
  static constexpr int kDirectory = O_RDONLY | O_DIRECTORY;

  /// `info`, unless null, is that of the file that is read.
  std::optional<Buffer> read_and_stat(const std::string& key, const ByteRange& range,
                                      struct stat* info) {
    std::optional<Buffer> bytes;
    with_object(key, [&](const Descriptor& file, std::uint64_t total) {
      const std::uint64_t offset =
          range.from_end ? total - std::min(range.length, total) : range.offset;
      const std::uint64_t available = total - std::min(offset, total);
      bytes.emplace(std::min(range.length, available));
      bytes->truncate(read_fully(file, key, offset, bytes->span()));
      if (info != nullptr && ::fstat(file.get(), info) != 0) throw failure("reading", key);
    });
    return bytes;
  }

  /// Is this directory the one at `prefix`, or one that it lies in? Then a link to it there is a
  /// circle.
  bool is_at_or_above(const std::string& prefix, const struct stat& directory) const {
    std::string above = ".";
    for (std::size_t end = 0;;) {
      struct stat info {};
      const Descriptor opened = beneath_.open(above, O_PATH);
      if (opened.get() >= 0 && ::fstat(opened.get(), &info) == 0 &&
          info.st_dev == directory.st_dev && info.st_ino == directory.st_ino)
        return true;
      if (end >= prefix.size()) return false;
      end = std::min(prefix.find('/', end + 1), prefix.size());
      above = prefix.substr(0, end);
    }
  }

  /// Null, with errno, when that is not possible.
  static Directory stream_of(Descriptor opened) {
    DIR* const stream = opened.get() < 0 ? nullptr : ::fdopendir(opened.get());
    if (stream != nullptr) opened.release();
    return {stream, ::closedir};
  }

  /// Status of the entry `name` of the directory `prefix`, which is open as `directory`, with links
  /// followed. nullopt, with errno, when that is not possible.
  std::optional<struct stat> status_of(int directory, const std::string& prefix,
                                       const std::string& name) const {
    struct stat info {};
    if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
    if (!S_ISLNK(info.st_mode)) return info;
    const Descriptor target = beneath_.open(prefix.empty() ? name : prefix + "/" + name, O_PATH);
    if (target.get() < 0 || ::fstat(target.get(), &info) != 0) return std::nullopt;
    return info;
  }

  std::uint64_t version_of(const struct stat& file) const {
    const std::uint64_t facts[] = {file.st_dev, file.st_ino,
                                   static_cast<std::uint64_t>(file.st_size),
                                   static_cast<std::uint64_t>(nanoseconds(file.st_mtim)),
                                   static_cast<std::uint64_t>(nanoseconds(file.st_ctim))};
    return versions_.digest({reinterpret_cast<const char*>(facts), sizeof facts});
  }

  Descriptor open(const std::string& key) const {
    check_key(key);
    const auto as_owner = owner_.enter();
    // Where files are short, others are closed soon: those of chunks that are being read.
    constexpr std::chrono::milliseconds kPause{10};
    constexpr int kTries = 200;
    for (int tries = 1;; ++tries) {
      // Not blocking: a FIFO among the files would wait for a writer.
      Descriptor file = beneath_.open(key, O_RDONLY | O_NONBLOCK | O_NOCTTY);
      if (file.get() >= 0 || (errno != EMFILE && errno != ENFILE) || tries == kTries) return file;
      std::this_thread::sleep_for(kPause);
    }
  }

  /// Calls `read` with the open file and its size, which it returns; nullopt when there is no such
  /// object. Bytes read are of the version that the object had when it was first read, or stale is
  /// thrown. For a file that was never read before and changes meanwhile, `read` is called again.
  template <class Read>
  std::optional<std::uint64_t> with_object(const std::string& key, Read&& read) {
    std::uint64_t waited_for = 0;  // a version that has been as it is for long enough
    for (int look = 0; look < kMaxLooks; ++look) {
      const bool was_there = versions_.contains(key);
      const std::optional<std::uint64_t> known = versions_.find(key);
      const Descriptor file = open(key);
      const std::optional<struct stat> before = stat_of(file, key);
      if (!before) {
        if (was_there) throw ObjectVersions::vanished((root_ / key).string());
        return std::nullopt;
      }
      const std::uint64_t version = version_of(*before);
      if (known && *known != version) throw ObjectVersions::changed((root_ / key).string());
      if (!known && version != waited_for) {
        if (const std::int64_t unsettled = unsettled_nanoseconds(*before); unsettled > 0) {
          wait_for(unsettled);
          // Whatever the clock shows next: it may be set back, or stand still.
          waited_for = version;
          continue;
        }
      }
      read(file, static_cast<std::uint64_t>(before->st_size));
      struct stat after {};
      if (::fstat(file.get(), &after) != 0) throw failure("reading", key);
      if (version_of(after) == version) {
        if (!known && !versions_.accept(key, version))
          throw ObjectVersions::changed((root_ / key).string());
        return static_cast<std::uint64_t>(before->st_size);
      }
      if (known) throw ObjectVersions::changed((root_ / key).string());
    }
    throw Error(ErrorCode::stale,
                "the file does not stop changing; read it when its writer has finished",
                (root_ / key).string());
  }

  /// nullopt when there is no such object: absent, below a file, or a directory.
  std::optional<struct stat> stat_of(const Descriptor& file, const std::string& key) const {
    if (file.get() < 0) {
      if (errno != ENOENT && errno != ENOTDIR) throw failure("opening", key);
      check_links(key);
      return std::nullopt;
    }
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) throw failure("reading", key);
    if (S_ISDIR(info.st_mode)) return std::nullopt;
    if (!S_ISREG(info.st_mode)) throw Error(ErrorCode::io, "not a regular file", key);
    return info;
  }

  /// Throws when a link leads nowhere: its target is not missing, but cannot be reached.
  void check_links(const std::string& key) const {
    const auto as_owner = owner_.enter();
    for (std::size_t end = 0; end < key.size();) {
      end = std::min(key.find('/', end + 1), key.size());
      const std::string path = key.substr(0, end);
      struct stat link {};
      if (::fstatat(beneath_.descriptor(), path.c_str(), &link, AT_SYMLINK_NOFOLLOW) != 0) return;
      if (S_ISLNK(link.st_mode) && beneath_.open(path, O_PATH).get() < 0)
        throw Error(ErrorCode::io, "a symbolic link leads to what is not there",
                    (root_ / path).string());
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
    return Error(code, std::string(what) + " failed: " + describe_system_error(errno),
                 (root_ / key).string());
  }

  const std::filesystem::path root_;
  ObjectVersions versions_;
  const Beneath beneath_;
  FileOwner owner_;  // constant after construction
};

}  // namespace

std::shared_ptr<Store> open_local_store(const std::filesystem::path& root,
                                        LocalStoreOptions options) {
  return std::make_shared<LocalStore>(root, std::move(options));
}

}  // namespace batchfs
