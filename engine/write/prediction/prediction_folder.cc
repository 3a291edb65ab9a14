#include "engine/write/prediction/prediction_folder.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/base/descriptor.h"
#include "engine/base/system_error.h"
#include "engine/store/place.h"

namespace batchfs {

namespace {

Error reading_failed(int error, const std::string& path) {
  const ErrorCode code =
      error == EACCES || error == EPERM ? ErrorCode::access_denied : ErrorCode::io;
  return Error(code, fmt::format("reading failed: {}", describe_system_error(error)), path);
}

std::string folder_named(const std::string& output) {
  const std::string text = usual_place(output);
  if (const std::size_t colon = text.find("://"); colon != std::string::npos)
    throw Error(ErrorCode::not_supported,
                fmt::format("predictions cannot be written to {}://: name a folder, and copy it "
                            "when it is finished",
                            text.substr(0, colon)));
  if (text.empty() || text.ends_with(".zip") || text.find('\0') != std::string::npos)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the output '{}' is not the name of a folder; name a new one", text));
  std::error_code error;
  std::string path = std::filesystem::absolute(text, error).lexically_normal().string();
  if (error) throw reading_failed(error.value(), text);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is a file; name a new folder", path));
  return path;
}

}  // namespace

PredictionFolder::PredictionFolder(const std::string& output)
    : root_(folder_named(output)), store_(open_local_output(root_)) {}

bool PredictionFolder::has(const std::string& key) const {
  struct stat info {};
  return ::stat(path(key).c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
}

void PredictionFolder::remove(const std::string& key) const { ::unlink(path(key).c_str()); }

void PredictionFolder::remove_folder(const std::string& key) const { ::rmdir(path(key).c_str()); }

std::vector<std::string> PredictionFolder::names(const std::string& key) const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(path(key), error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && error.value() != ENOENT && error.value() != ENOTDIR)
    throw reading_failed(error.value(), path(key));
  std::sort(names.begin(), names.end());
  return names;
}

void PredictionFolder::each_object(
    const std::string& key, const std::function<void(const std::string& below)>& call) const {
  if (has(key)) call("");
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(path(key), error);
  const std::size_t prefix = path(key).size() + 1;
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && entry->file_size(ignored) > 0)
      call(entry->path().string().substr(prefix));
  }
  if (error && error.value() != ENOENT && error.value() != ENOTDIR)
    throw reading_failed(error.value(), path(key));
}

std::optional<PredictionFolder::FirstLine> PredictionFolder::first_line(
    const std::string& key, std::size_t max_bytes) const {
  constexpr std::size_t kBlockBytes = 16 << 10;
  const std::string place = path(key);
  const Descriptor file(::open(place.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw reading_failed(errno, place);
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) throw reading_failed(errno, place);
  FirstLine line{{}, static_cast<std::uint64_t>(info.st_size)};
  while (line.text.size() <= max_bytes) {
    const std::size_t before = line.text.size();
    line.text.resize(before + kBlockBytes);
    const ssize_t got =
        ::pread(file.get(), line.text.data() + before, kBlockBytes, static_cast<off_t>(before));
    if (got < 0 && errno != EINTR) throw reading_failed(errno, place);
    line.text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(0, got)));
    if (const std::size_t end = line.text.find('\n', before); end != std::string::npos) {
      line.text.resize(end);
      return line;
    }
    if (got == 0) break;
  }
  throw Error(ErrorCode::corrupt, "the file has no header", place);
}

std::unique_ptr<OutputStore::Lock> PredictionFolder::wait_for_lock(const std::string& name) const {
  constexpr auto kMaxPause = std::chrono::milliseconds(20);
  for (auto pause = std::chrono::microseconds(200);;
       pause = std::min<std::chrono::microseconds>(2 * pause, kMaxPause)) {
    if (std::unique_ptr<OutputStore::Lock> lock = store_->lock(name)) return lock;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace batchfs
