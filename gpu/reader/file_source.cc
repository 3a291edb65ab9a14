#include "gpu/reader/file_source.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "gpu/reader/file_errors.h"
#include "gpu/reader/file_labels.h"
#include "gpu/reader/tensor_files.h"

namespace batchfs::reader {

namespace {

/// The mount's own bound.
constexpr std::int64_t kMaxWorld = handoff::kMaxWorld;

struct File {
  explicit File(int descriptor) : fd(descriptor) {}
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const int fd;
};

[[noreturn]] void fail(const std::string& path) {
  const int cause = errno;
  if (cause == ENOTCONN || cause == ECONNABORTED)
    throw Lost{"the mount's daemon has exited; run `batchfs umount --dead DIR`"};
  throw file_error(cause, path);
}

std::string numbered(const char* format, std::int64_t number) {
  char text[64];
  std::snprintf(text, sizeof text, format, static_cast<long long>(number));
  return text;
}

/// Does the kernel read the mount's batches itself?
bool is_passthrough(const std::string& view_directory) {
  try {
    return nlohmann::json::parse(read_text(view_directory + "/../../.batchfs/status.json"))
        .value("passthrough", false);
  } catch (const std::exception&) {  // not a mount, but a copy of its files
    return false;
  }
}

/// The path by which this process finds an open directory, wherever its own leads meanwhile.
std::string held_path(int directory, const std::string& path) {
  const std::string held = "/proc/self/fd/" + std::to_string(directory);
  struct stat at;
  return directory >= 0 && ::stat(held.c_str(), &at) == 0 ? held : path;
}

}  // namespace

std::string read_text(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) fail(path);
  std::string text;
  char block[16384];
  for (;;) {
    const ssize_t got = ::read(file.fd, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path);
    if (got == 0) return text;
    text.append(block, static_cast<std::size_t>(got));
  }
}

FileSource::FileSource(std::string directory)
    : directory_(std::move(directory)),
      held_(::open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
      place_(held_path(held_.get(), directory_)),
      schema_(std::make_shared<const Schema>(
          parse_schema(read_text(place_ + "/schema.json"), read_text(place_ + "/view.json")))),
      coordinates_(file_coordinates(place_, schema_)),
      map_(is_passthrough(directory_)) {
  const auto has = [&](const char* format) {
    return std::find(schema_->formats.begin(), schema_->formats.end(), format) !=
           schema_->formats.end();
  };
  safetensors_ = has("safetensors");
  if (!safetensors_ && !has("npy"))
    throw Error(ErrorCode::not_supported,
                "the view's files can be read here as npy or safetensors only; add one of them to "
                "its \"formats\"",
                directory_);
}

void FileSource::start(const Series& series, std::uint32_t) {
  series_ = series;
  next_ = 0;
}

std::shared_ptr<Batch> FileSource::next(const Interrupted& interrupted) {
  if (next_ >= series_.count) return nullptr;
  const std::int64_t batch = series_.first + next_ * series_.step;
  ++next_;  // also past one that fails
  return read(series_.epoch, batch, series_.step, interrupted);
}

std::shared_ptr<Batch> FileSource::get(std::int64_t epoch, std::int64_t batch,
                                       const Interrupted& interrupted) {
  return read(epoch, batch, 1, interrupted);
}

/// Opens and maps or reads; the daemon makes the batch while open() waits.
std::shared_ptr<const Mapping> FileSource::file(const std::string& path,
                                                const Interrupted& interrupted) const {
  for (;;) {
    const File opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (opened.fd < 0 && errno == EINTR) {
      if (interrupted && interrupted())
        throw Error(ErrorCode::interrupted, "the call was interrupted");
      continue;
    }
    struct stat at;
    if (opened.fd < 0 || ::fstat(opened.fd, &at) != 0) fail(path);
    const auto size = static_cast<std::uint64_t>(at.st_size);
    return map_ ? Mapping::of_file(opened.fd, size) : Mapping::read_from(opened.fd, size);
  }
}

std::shared_ptr<Batch> FileSource::read(std::int64_t epoch, std::int64_t batch, std::int64_t step,
                                        const Interrupted& interrupted) const {
  // Opens the batch in the directory of its rank, if that has it: the mount derives the next
  // batches from it. Batches after the last, which only padded ranks have, exist only in such
  // directories.
  std::int64_t world = step, rank = batch % step;
  const auto has = [&](std::int64_t w, std::int64_t r) {
    return w <= kMaxWorld && batch / w < rank_batches(*schema_, 0, r, w);
  };
  if (!has(world, rank)) world = 1, rank = 0;
  if (!has(world, rank)) world = batch + 1, rank = batch;
  if (!has(world, rank))
    throw Error(ErrorCode::not_found, "there is no batch " + std::to_string(batch), directory_);
  std::string path;
  if (world > 1) path += "/rank-" + std::to_string(rank) + "-of-" + std::to_string(world);
  path += numbered("/epoch-%04lld", epoch) + numbered("/batch-%06lld", batch / world);

  auto made = std::make_shared<Batch>();
  made->schema = schema_;
  made->epoch = epoch;
  made->number = batch;
  made->samples =
      schema_->remainder == handoff::Remainder::keep
          ? std::min(schema_->batch_size, schema_->epoch_samples - batch * schema_->batch_size)
          : schema_->batch_size;
  made->coordinates = coordinates_;
  const std::string where = directory_ + path;
  path = place_ + path;
  try {
    if (schema_->has_windows) made->windows = file_windows(path, schema_, made->samples);
    if (safetensors_) {
      made->memory.push_back(file(path + ".safetensors", interrupted));
      made->tensors = safetensors_tensors(*made->memory[0], *schema_);
    } else {
      for (const TensorInfo& info : schema_->tensors) {
        made->memory.push_back(
            file(schema_->tensors.size() == 1 ? path + ".npy" : path + "/" + info.name + ".npy",
                 interrupted));
        made->tensors.push_back(npy_tensor(*made->memory.back(), info));
      }
    }
  } catch (const Error& error) {
    const std::string own =
        error.where().starts_with(path) ? error.where().substr(path.size()) : "";
    throw Error(error.code(), error.why(), where + own);
  }
  return made;
}

}  // namespace batchfs::reader
