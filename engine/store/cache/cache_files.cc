#include "engine/store/cache/cache_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/base/system_error.h"
#include "engine/store/crypto.h"

namespace batchfs {

namespace {

/// Beside a version of the format there may be others: a change needs no clearing.
constexpr const char* kFormat = "batchfs-1";
constexpr const char* kUnfinished = "unfinished";
constexpr char kEntryMagic[8] = {'b', 'a', 't', 'c', 'h', 'f', 's', '\2'};
constexpr int kAbandonedAfter = 3600;  // seconds
constexpr std::uint64_t kBlock = 4096;

struct Header {
  char magic[8];
  std::uint64_t digest_low, digest_high;  // XXH3 of the rest of the file
  CacheFiles::Name name;
  std::uint64_t size;  // of the bytes after the header
  std::uint64_t object_size;
  std::uint64_t version_length;
  char version[CacheFiles::kMaxVersionLength];
  char unused[32];
};
static_assert(sizeof(Header) == 512);
constexpr std::size_t kDigested = 24;

XXH128_hash_t digest_of(const Header& header, std::span<const std::byte> bytes) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  if (!state) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  XXH3_128bits_update(state.get(), reinterpret_cast<const char*>(&header) + kDigested,
                      sizeof header - kDigested);
  XXH3_128bits_update(state.get(), bytes.data(), bytes.size());
  return XXH3_128bits_digest(state.get());
}

/// In one of 256 folders, so that none has too many.
std::string path_of(const CacheFiles::Name& name) {
  const std::string digits =
      hex({reinterpret_cast<const char*>(name.words.data()), sizeof name.words});
  return digits.substr(0, 2) + "/" + digits;
}
std::string folder_of(const CacheFiles::Name& name) { return path_of(name).substr(0, 2); }

std::uint64_t on_disk(std::uint64_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

bool read_fully(int fd, Header& header, std::span<std::byte> bytes) {
  std::size_t done = 0;
  const std::size_t total = sizeof header + bytes.size();
  while (done < total) {
    iovec parts[2];
    int count = 0;
    if (done < sizeof header)
      parts[count++] = {reinterpret_cast<char*>(&header) + done, sizeof header - done};
    const std::size_t skip = done < sizeof header ? 0 : done - sizeof header;
    if (skip < bytes.size()) parts[count++] = {bytes.data() + skip, bytes.size() - skip};
    const ssize_t got = ::preadv(fd, parts, count, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

bool write_fully(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return true;
}

Error failure(const std::string& directory) {
  return Error(errno == EACCES || errno == EPERM || errno == EROFS ? ErrorCode::access_denied
                                                                   : ErrorCode::io,
               fmt::format("the cache directory cannot be used: {}", describe_system_error(errno)),
               directory);
}

/// Why get() would drop the entry in this file; empty: it would not.
std::string damage_of(int fd, const std::string& path) {
  constexpr std::size_t kBlockRead = 1 << 20;
  const auto read_at = [fd](void* to, std::size_t size, std::uint64_t offset) {
    std::size_t done = 0;
    while (done < size) {
      const ssize_t got = ::pread(fd, static_cast<char*>(to) + done, size - done,
                                  static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Error(ErrorCode::io, describe_system_error(errno));
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  };
  try {
    Header header{};
    if (read_at(&header, sizeof header, 0) != sizeof header) return "shorter than its header";
    constexpr std::size_t kFamily =
        sizeof kEntryMagic - 1;  // the last byte is the version of the format
    if (std::memcmp(header.magic, kEntryMagic, kFamily) != 0) return "not an entry of a cache";
    if (header.magic[kFamily] != kEntryMagic[kFamily])
      return {};  // of another batchfs: never read, in time evicted
    const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                                XXH3_freeState);
    if (!state) throw std::bad_alloc();
    XXH3_128bits_reset(state.get());
    XXH3_128bits_update(state.get(), reinterpret_cast<const char*>(&header) + kDigested,
                        sizeof header - kDigested);
    Buffer block(kBlockRead);
    std::uint64_t size = 0;
    for (;;) {
      const std::size_t got = read_at(block.data(), block.size(), sizeof header + size);
      XXH3_128bits_update(state.get(), block.data(), got);
      size += got;
      if (got < block.size()) break;
    }
    const XXH128_hash_t digest = XXH3_128bits_digest(state.get());
    if (header.digest_low != digest.low64 || header.digest_high != digest.high64)
      return "the checksum does not match";
    if (header.size != size || header.version_length > CacheFiles::kMaxVersionLength)
      return "the header is wrong";
    if (path_of(header.name) != path) return "the entry of another name";
    return {};
  } catch (const Error& error) {
    return error.why();
  }
}

struct CachedFile {
  timespec used;
  std::uint64_t size;
  std::string path;
};

/// Calls `take(folder, name, status)` for the files of a folder.
template <class Take>
void for_each_file(int root, const std::string& folder, Take&& take) {
  const int fd = ::openat(root, folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  DIR* stream = ::fdopendir(fd);
  if (stream == nullptr) {
    ::close(fd);
    return;
  }
  while (const dirent* entry = ::readdir(stream)) {
    struct stat status {};
    if (::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode))
      take(folder + "/" + entry->d_name, status);
  }
  ::closedir(stream);
}

}  // namespace

CacheFiles::CacheFiles(const std::string& directory, Options options)
    : directory_(directory), options_(options) {
  std::random_device random;
  writer_ = std::uint64_t{random()} << 32 | random();
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(directory).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) throw failure(directory);
  const Descriptor outer(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (outer.get() < 0) throw failure(directory);
  // Our own folder in it: the directory may hold other things and have other permissions.
  if (::mkdirat(outer.get(), kFormat, 0700) != 0 && errno != EEXIST) throw failure(directory);
  root_ = ::openat(outer.get(), kFormat, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (root_ < 0) throw failure(directory);
  struct stat status {};
  const bool known = ::fstat(root_, &status) == 0;
  const bool ours = status.st_uid == ::geteuid() && (status.st_mode & 0022) == 0;
  if (!known || !ours || (::mkdirat(root_, kUnfinished, 0700) != 0 && errno != EEXIST)) {
    const Error refused =
        known && !ours ? Error(ErrorCode::access_denied,
                               "the cache belongs to somebody else, or others may write into it; "
                               "take another directory, or chmod it to 700",
                               (std::filesystem::path(directory) / kFormat).string())
                       : failure(directory);
    ::close(root_);
    throw refused;
  }
  remove_abandoned();
}

CacheFiles::~CacheFiles() { ::close(root_); }

CacheFiles::Name CacheFiles::name_of(std::string_view text) {
  Name name;
  const std::string digest = sha256(text);
  digest.copy(reinterpret_cast<char*>(name.words.data()), sizeof name.words);
  return name;
}

void CacheFiles::check_folder(const std::string& directory, int folder, const TakeEntry& take) {
  const Descriptor outer(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Descriptor root(
      outer.get() < 0
          ? -1
          : ::openat(outer.get(), kFormat, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (root.get() < 0 && (errno == ENOENT || errno == ENOTDIR))
    throw Error(ErrorCode::not_found, "there is no cache of batchfs in this directory", directory);
  if (root.get() < 0) throw failure(directory);
  for_each_file(
      root.get(), fmt::format("{:02x}", folder),
      [&](const std::string& path, const struct stat& status) {
        const Descriptor file(
            ::openat(root.get(), path.c_str(), O_RDONLY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC));
        if (file.get() < 0 && errno == ENOENT) return;  // evicted meanwhile
        const std::string why =
            file.get() < 0 ? describe_system_error(errno) : damage_of(file.get(), path);
        take(std::string(kFormat) + "/" + path, static_cast<std::uint64_t>(status.st_size), why);
      });
}

bool CacheFiles::contains(const Name& name, std::uint64_t largest) const {
  struct stat status {};
  if (::fstatat(root_, path_of(name).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  return S_ISREG(status.st_mode) && size >= sizeof(Header) && size - sizeof(Header) <= largest;
}

std::optional<CacheFiles::Entry> CacheFiles::get(
    const Name& name, std::uint64_t largest, const std::function<bool(const Version&)>& wanted) {
  const Descriptor file(::openat(root_, path_of(name).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return std::nullopt;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > sizeof(Header) && size - sizeof(Header) > largest) return std::nullopt;
  Header header{};
  Entry entry;
  bool good = size >= sizeof header;
  if (good) {
    entry.bytes = Buffer(size - sizeof header);
    good = read_fully(file.get(), header, entry.bytes.span());
  }
  if (good) {
    const XXH128_hash_t digest = digest_of(header, entry.bytes.span());
    good = std::memcmp(header.magic, kEntryMagic, sizeof kEntryMagic) == 0 &&
           header.digest_low == digest.low64 && header.digest_high == digest.high64 &&
           header.name == name && header.size == entry.bytes.size() &&
           header.version_length <= kMaxVersionLength;
  }
  if (!good) {
    ++damaged_;
    remove(name, file.get());
    return std::nullopt;
  }
  entry.version = {{header.version, header.version_length}, header.object_size};
  if (wanted && !wanted(entry.version)) {
    remove(name, file.get());
    return std::nullopt;
  }
  if (static_cast<double>(std::time(nullptr) - status.st_atim.tv_sec) >= options_.touch_after) {
    const timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
    ::futimens(file.get(), times);
  }
  return entry;
}

bool CacheFiles::put(const Name& name, const Version& version, std::span<const std::byte> bytes) {
  const std::uint64_t size = on_disk(sizeof(Header) + bytes.size());
  if (version.text.size() > kMaxVersionLength) return false;
  if (options_.limit != 0) {
    if (size > options_.limit / 2) return false;
    if (add_usage(0) + size > options_.limit) evict();
    if (add_usage(0) + size > options_.limit) return false;
  }
  Header header{};
  std::memcpy(header.magic, kEntryMagic, sizeof kEntryMagic);
  header.name = name;
  header.size = bytes.size();
  header.object_size = version.object_size;
  header.version_length = version.text.size();
  version.text.copy(header.version, version.text.size());
  const XXH128_hash_t digest = digest_of(header, bytes);
  header.digest_low = digest.low64;
  header.digest_high = digest.high64;

  const std::string temporary = temporary_path();
  const std::string path = path_of(name);
  add_usage(static_cast<std::int64_t>(size));
  bool done = false;
  int why = 0;
  {
    const Descriptor file(
        ::openat(root_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    done = file.get() >= 0 && write_fully(file.get(), std::as_bytes(std::span(&header, 1))) &&
           write_fully(file.get(), bytes);
    why = errno;
  }
  if (done && ::renameat(root_, temporary.c_str(), root_, path.c_str()) != 0) {
    done = errno == ENOENT &&
           (::mkdirat(root_, folder_of(name).c_str(), 0700) == 0 || errno == EEXIST) &&
           ::renameat(root_, temporary.c_str(), root_, path.c_str()) == 0;
    why = errno;
  }
  if (done) return true;
  errno = why;
  const Error error = failure(directory_);
  ::unlinkat(root_, temporary.c_str(), 0);
  try {
    add_usage(-static_cast<std::int64_t>(size));
  } catch (const Error&) {
    // Too high a count is set right by the next eviction.
  }
  throw error;
}

/// Removes the entry that `file` was opened from. Another one may have been put in its place since,
/// by this process or another: the file is moved away first, and moved back when it is not `file`.
void CacheFiles::remove(const Name& name, int file) {
  const std::string path = path_of(name);
  const std::string temporary = temporary_path();
  struct stat expected {
  }, moved{};
  if (::fstat(file, &expected) != 0 ||
      ::renameat(root_, path.c_str(), root_, temporary.c_str()) != 0)
    return;
  const bool same = ::fstatat(root_, temporary.c_str(), &moved, AT_SYMLINK_NOFOLLOW) == 0 &&
                    moved.st_dev == expected.st_dev && moved.st_ino == expected.st_ino;
  // Where a third entry has been put meanwhile, that one stays.
  if (!same && ::renameat2(root_, temporary.c_str(), root_, path.c_str(), RENAME_NOREPLACE) == 0)
    return;
  if (::unlinkat(root_, temporary.c_str(), 0) != 0) return;
  try {
    add_usage(-static_cast<std::int64_t>(on_disk(static_cast<std::uint64_t>(moved.st_size))));
  } catch (const Error&) {
    // Ignored for the same reason.
  }
}

std::string CacheFiles::temporary_path() {
  return fmt::format("{}/{:016x}-{}", kUnfinished, writer_, ++next_);
}

/// Adds to the count of bytes on the disk and returns the sum.
std::uint64_t CacheFiles::add_usage(std::int64_t bytes) {
  const Descriptor file(::openat(root_, "usage", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0 || ::flock(file.get(), LOCK_EX) != 0) throw failure(directory_);
  std::int64_t usage = 0;
  if (::pread(file.get(), &usage, sizeof usage, 0) != sizeof usage) usage = 0;
  if (bytes == 0) return static_cast<std::uint64_t>(usage);
  usage = std::max<std::int64_t>(usage + bytes, 0);
  if (::pwrite(file.get(), &usage, sizeof usage, 0) != sizeof usage) throw failure(directory_);
  return static_cast<std::uint64_t>(usage);
}

void CacheFiles::evict() {
  const Descriptor lock(::openat(root_, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (lock.get() < 0 || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;
  const auto before = static_cast<std::int64_t>(add_usage(0));
  std::vector<CachedFile> found;
  std::uint64_t total = 0;
  for (int folder = 0; folder < kFolders; ++folder) {
    for_each_file(root_, fmt::format("{:02x}", folder),
                  [&](std::string path, const struct stat& status) {
                    const std::uint64_t size = on_disk(static_cast<std::uint64_t>(status.st_size));
                    found.push_back({status.st_atim, size, std::move(path)});
                    total += size;
                  });
  }
  std::sort(found.begin(), found.end(), [](const CachedFile& a, const CachedFile& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  const std::uint64_t target = options_.limit / 10 * 9;
  for (const CachedFile& entry : found) {
    if (options_.limit == 0 || total <= target) break;
    if (::unlinkat(root_, entry.path.c_str(), 0) != 0 && errno != ENOENT) continue;
    total -= entry.size;
    ++evicted_;
  }
  // Entries that others wrote meanwhile stay counted.
  add_usage(static_cast<std::int64_t>(total) - before);
  remove_abandoned();
}

/// Files of processes that ended while they wrote them.
void CacheFiles::remove_abandoned() {
  const std::time_t now = std::time(nullptr);
  for_each_file(root_, kUnfinished, [&](const std::string& path, const struct stat& status) {
    if (now - status.st_mtim.tv_sec > kAbandonedAfter) ::unlinkat(root_, path.c_str(), 0);
  });
}

}  // namespace batchfs
