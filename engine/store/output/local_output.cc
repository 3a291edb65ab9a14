// A directory as an output. An object is written to .batchfs/parts first, then renamed.

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/base/descriptor.h"
#include "engine/base/system_error.h"
#include "engine/store/output/output_store.h"
#include "engine/store/output/parent_folder.h"

namespace batchfs {

namespace {

class FileLock final : public OutputStore::Lock {
 public:
  FileLock(Descriptor file, std::filesystem::path path)
      : file_(std::move(file)), path_(std::move(path)) {}

  void remove() override {
    ::unlink(path_.c_str());
    ::rmdir(path_.parent_path().c_str());  // unless others have files there
  }

 private:
  const Descriptor file_;  // the kernel releases the lock with it
  const std::filesystem::path path_;
};

class LocalOutput final : public OutputStore {
 public:
  explicit LocalOutput(std::filesystem::path root) : root_(std::move(root)) {}

  std::string url() const override { return root_.string(); }
  bool is_local() const override { return true; }

  void put(const std::string& key, std::span<const std::span<const std::byte>> parts) override {
    check_key(key);
    const std::filesystem::path target = root_ / key;
    const std::filesystem::path part =
        working() / "parts" / fmt::format("{:08x}-{}-{}", tag_, ::getpid(), ++last_part_);
    Descriptor file = create(part);
    try {
      write_all(file, parts, target);
      // Each output ends with sync(), which waits for the disk: the disk begins now. Working files
      // may be gone before. An error here recurs in sync().
      if (!key.starts_with(kWorkingFolder))
        ::sync_file_range(file.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
    } catch (...) {
      ::unlink(part.c_str());
      throw;
    }
    if (::rename(part.c_str(), target.c_str()) == 0) return;
    if (errno == ENOENT) {
      make_folder(target.parent_path());
      if (::rename(part.c_str(), target.c_str()) == 0) return;
    }
    const int error = errno;
    ::unlink(part.c_str());
    throw failure(error, "writing", target);
  }

  std::optional<Buffer> get(const std::string& key) override {
    check_key(key);
    const std::filesystem::path path = root_ / key;
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) {
      if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
      throw failure(errno, "reading", path);
    }
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) throw failure(errno, "reading", path);
    Buffer bytes(static_cast<std::size_t>(info.st_size));
    read_at(file, 0, bytes.span(), path);
    return bytes;
  }

  void read_part(const std::string& key, std::uint64_t offset, std::span<std::byte> out) override {
    check_key(key);
    const std::filesystem::path path = root_ / key;
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) throw failure(errno, "reading", path);
    read_at(file, offset, out, path);
  }

  bool is_empty() override {
    std::error_code error;
    const std::filesystem::directory_iterator entries(root_, error);
    if (error.value() == ENOENT) return true;
    if (error) throw failure(error.value(), "looking at", root_);
    for (const std::filesystem::directory_entry& entry : entries)
      if (entry.path().filename() != kWorkingFolder) return false;
    return true;
  }

  void sync() override {
    const Descriptor folder(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() < 0 || ::syncfs(folder.get()) != 0) throw failure(errno, "writing", root_);
  }

  void discard_working_files() override {
    std::error_code error;
    std::filesystem::remove_all(working(), error);
    // Another process that finds the output finished removes them, too, or has just put its lock
    // there, to look whether it is.
    if (error && error.value() != ENOENT && error.value() != ENOTEMPTY)
      throw failure(error.value(), "removing", working());
  }

  std::unique_ptr<Lock> lock(const std::string& name) override {
    check_key(name);
    const std::filesystem::path path = working() / name;
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
      if (file.get() < 0 && errno == ENOENT) {
        make_folder(path.parent_path());
        file = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
      }
      if (file.get() < 0 && errno == ENOENT) continue;
      if (file.get() < 0) throw failure(errno, "writing", path);
      if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return nullptr;
      // A process that finished meanwhile has removed the file: others would lock a new one.
      struct stat held {
      }, there{};
      if (::fstat(file.get(), &held) != 0) throw failure(errno, "writing", path);
      if (::stat(path.c_str(), &there) == 0 && there.st_ino == held.st_ino &&
          there.st_dev == held.st_dev)
        return std::make_unique<FileLock>(std::move(file), path);
    }
    return nullptr;
  }

 private:
  static constexpr int kMaxAttempts = 100;  // each lost to a process that removes working files

  std::filesystem::path working() const { return root_ / kWorkingFolder; }

  static Error failure(int error, const char* doing, const std::filesystem::path& path) {
    const ErrorCode code = error == EACCES || error == EPERM || error == EROFS
                               ? ErrorCode::access_denied
                           : error == ENOENT ? ErrorCode::not_found
                                             : ErrorCode::io;
    std::string why = fmt::format("{} failed: {}", doing, describe_system_error(error));
    if (error == ENOSPC || error == EDQUOT)
      why += "; make room and run the same command again: it continues";
    return Error(code, why, path.string());
  }

  void make_folder(const std::filesystem::path& path) const {
    expect_parent_folder(root_);
    std::error_code error;
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      std::filesystem::create_directories(path, error);
      // It existed, and has been removed by a process that finished.
      if (error.value() != EEXIST && error.value() != ENOENT) break;
    }
    if (error) throw failure(error.value(), "making the folder", path);
  }

  Descriptor create(const std::filesystem::path& part) const {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    Descriptor file(::open(part.c_str(), kFlags, 0666));
    if (file.get() < 0 && errno == ENOENT) {
      make_folder(part.parent_path());
      file = Descriptor(::open(part.c_str(), kFlags, 0666));
    }
    if (file.get() < 0) throw failure(errno, "writing", part);
    return file;
  }

  static void write_all(const Descriptor& file, std::span<const std::span<const std::byte>> parts,
                        const std::filesystem::path& path) {
    for (std::span<const std::byte> part : parts) {
      while (!part.empty()) {
        const ssize_t written = ::write(file.get(), part.data(), part.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw failure(errno, "writing", path);
        part = part.subspan(static_cast<std::size_t>(written));
      }
    }
  }

  static void read_at(const Descriptor& file, std::uint64_t offset, std::span<std::byte> out,
                      const std::filesystem::path& path) {
    while (!out.empty()) {
      const ssize_t got = ::pread(file.get(), out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw failure(errno, "reading", path);
      if (got == 0) throw Error(ErrorCode::corrupt, "the file is too short", path.string());
      out = out.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
  }

  const std::filesystem::path root_;
  /// Processes on several machines may have one id, and write to one shared folder.
  const std::uint32_t tag_ = std::random_device{}();
  std::atomic<std::uint64_t> last_part_{0};
};

}  // namespace

std::shared_ptr<OutputStore> open_local_output(const std::string& path) {
  return std::make_shared<LocalOutput>(path);
}

}  // namespace batchfs
