// doctor: how fast batches are read here, in each way, from a small store that is made for it.

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/strings.h"
#include "engine/base/system_error.h"
#include "tools/cli/whole_file.h"
#include "tools/doctor/checks.h"
#include "tools/monitor/activity.h"

namespace batchfs {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kChunks = 16, kChunkFloats = 1 << 20;  // 64 MB in one batch
constexpr const char* kBatch = "/views/v/epoch-0000/batch-000000.npy";

/// A temporary directory, removed with its contents.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "batchfs-doctor-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw Error(ErrorCode::io, describe_system_error(errno), name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Zarr 3, not compressed: the check measures reading batches, not decoding them.
void make_store(const std::string& path) {
  fs::create_directories(path + "/a");
  write_whole_file(path + "/zarr.json",
                   R"({"zarr_format": 3, "node_type": "group", "attributes": {}})");
  write_whole_file(
      path + "/a/zarr.json",
      fmt::format(
          R"({{"zarr_format": 3, "node_type": "array", "shape": [{0}, {1}], "data_type": "float32",
"chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [1, {1}]}}}},
"chunk_key_encoding": {{"name": "default", "configuration": {{"separator": "."}}}}, "fill_value": 0,
"codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}], "attributes": {{}},
"dimension_names": ["time", "x"]}})",
          kChunks, kChunkFloats));
  std::string values(static_cast<std::size_t>(kChunkFloats) * 4, '\1');
  for (std::int64_t i = 0; i < kChunks; ++i)
    write_whole_file(fmt::format("{}/a/c.{}.0", path, i), values);
  write_whole_file(path + "/view.json",
                   fmt::format(R"({{"name": "v", "variables": ["a"], "window": {{"time": 1}},
"batch": {{"size": {}}}, "epochs": 1, "formats": ["npy"]}})",
                               kChunks));
}

/// Runs this program. Empty when it succeeds, else its line on stderr.
std::string run(std::vector<std::string> arguments, const std::string& errors) {
  std::vector<char*> pointers;
  arguments.insert(arguments.begin(), "batchfs");
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int failed =
      posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return describe_system_error(failed);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  std::ifstream file(errors);
  std::string line;
  std::getline(file, line);
  return line.empty() ? "it ended without a message" : line;
}

/// An open batch.
class File {
 public:
  explicit File(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status {};
    if (fd_ < 0 || ::fstat(fd_, &status) != 0) {
      const int error = errno;
      if (fd_ >= 0) ::close(fd_);
      throw Error(ErrorCode::io, describe_system_error(error), path);
    }
    size_ = static_cast<std::size_t>(status.st_size);
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// Bytes per second into a buffer that is used again.
  double read_rate() const {
    std::vector<char> buffer(1 << 20);
    const auto began = std::chrono::steady_clock::now();
    for (std::size_t at = 0; at < size_;) {
      const ssize_t n = ::pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(at));
      if (n <= 0)
        throw Error(ErrorCode::io, n < 0 ? describe_system_error(errno) : "ends early",
                    "the batch");
      at += static_cast<std::size_t>(n);
    }
    return rate(began);
  }
  /// Bytes per second, mapping the file and looking at all of it.
  double map_rate() const {
    const auto began = std::chrono::steady_clock::now();
    void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_, 0);
    if (mapped == MAP_FAILED)
      throw Error(ErrorCode::io, std::string("cannot be mapped: ") + describe_system_error(errno),
                  "the batch");
    const auto* bytes =
        static_cast<const volatile unsigned char*>(mapped);  // each cache line is looked at
    for (std::size_t at = 0; at < size_; at += 64) static_cast<void>(bytes[at]);
    const double result = rate(began);
    ::munmap(mapped, size_);
    return result;
  }

 private:
  double rate(std::chrono::steady_clock::time_point began) const {
    return static_cast<double>(size_) /
           std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  const int fd_;
  std::size_t size_ = 0;
};

std::string speed(double bytes) { return fmt::format("{:.1f} GB/s", bytes * 1e-9); }

bool is_passthrough(const std::string& mount) {
  const std::string path = mount + "/.batchfs/status.json";
  return activity(nullptr, parse_json(read_text_file(path), path)).passthrough;
}

/// Mounts, measures in one way, unmounts.
Checks measure(const Scratch& scratch, bool passthrough) {
  using enum Check::State;
  const std::string mount = scratch.path() + "/mnt", errors = scratch.path() + "/errors",
                    store = scratch.path() + "/store.zarr";
  std::vector<std::string> arguments{"mount",    store, mount, "--view", store + "/view.json",
                                     "--memory", "512M"};
  if (!passthrough) arguments.emplace_back("--no-passthrough");
  if (const std::string why = run(arguments, errors); !why.empty())
    return {
        {problem, "mounting", "a small store cannot be mounted: " + why, "see the lines above"}};
  Checks checks;
  try {
    if (passthrough && !is_passthrough(mount)) {
      checks.push_back({note, "passthrough", "the kernel does not read batches itself here",
                        "Linux 6.9 or later, mounted by root, does"});
    } else {
      const File file(mount + kBatch);
      if (passthrough) checks.push_back({ok, "mapped by the kernel", speed(file.map_rate()), ""});
      const double read = file.read_rate();
      checks.push_back(
          {ok, passthrough ? "read by the kernel" : "read by batchfs", speed(read), ""});
      if (!passthrough) {
        try {
          checks.push_back({ok, "mapped by batchfs", speed(file.map_rate()), ""});
        } catch (const Error& error) {
          checks.push_back(
              {note, "mapped by batchfs", error.why(), "Linux 6.6 or later maps them"});
        }
      }
    }
  } catch (const Error& error) {
    checks.push_back({problem, passthrough ? "passthrough" : "direct", error.what(),
                      "`batchfs mount -f` shows the log"});
  }
  run({"umount", "--lazy", mount}, errors);
  return checks;
}

}  // namespace

Checks check_modes() {
  if (::access("/dev/fuse", R_OK | W_OK) != 0) return {};  // told already
  try {
    const Scratch scratch;
    fs::create_directory(scratch.path() + "/mnt");
    make_store(scratch.path() + "/store.zarr");
    Checks checks = measure(scratch, true);
    if (checks.size() == 1 && checks[0].state == Check::State::problem) return checks;
    const Checks direct = measure(scratch, false);
    checks.insert(checks.end(), direct.begin(), direct.end());
    return checks;
  } catch (const Error& error) {
    return {{Check::State::note, "reading", std::string("could not be measured: ") + error.what(),
             "TMPDIR names a directory with 70 MB of room"}};
  } catch (const fs::filesystem_error& error) {
    return {
        {Check::State::note, "reading", std::string("could not be measured: ") + error.what(), ""}};
  }
}

}  // namespace batchfs
