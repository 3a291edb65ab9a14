#include "gpu/reader/file_labels.h"

#include <map>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "gpu/reader/file_errors.h"
#include "gpu/reader/file_source.h"
#include "gpu/reader/tensor_files.h"

namespace batchfs::reader {

namespace {

/// Like FileSource's read_text(), but reports a lost mount as io: only callers that reconnect
/// handle Lost.
std::string text_of(const std::string& path) {
  try {
    return read_text(path);
  } catch (const Lost& lost) {
    throw Error(ErrorCode::io, lost.why, path);
  }
}

class FileCoordinates final : public Coordinates {
 public:
  FileCoordinates(std::string directory, std::shared_ptr<const Schema> schema)
      : directory_(std::move(directory)), schema_(std::move(schema)) {}

  std::span<const std::byte> values(std::size_t number) const override {
    const CoordinateInfo& info = schema_->coordinates.at(number);
    const std::string path = directory_ + "/coords/" + info.name + ".npy";
    if (info.dtype.itemsize == 0)
      throw Error(ErrorCode::not_supported, "no data type '" + info.dtype.name + "' here", path);
    const std::lock_guard lock(mutex_);
    Read& read = read_[number];
    if (read.memory == nullptr) {
      const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      struct stat at;
      if (file.get() < 0 || ::fstat(file.get(), &at) != 0) throw file_error(errno, path);
      const auto memory = Mapping::read_from(file.get(), static_cast<std::uint64_t>(at.st_size));
      const TensorInfo tensor{info.name, info.dtype, {info.size}, {}};
      try {
        const Tensor found = npy_tensor(*memory, tensor);
        if (found.shape[0] != info.size)
          throw Error(ErrorCode::corrupt, "a coordinate has another length than in the schema");
        read = {memory, {found.data, found.bytes}};
      } catch (Error& error) {
        throw error.at(path);
      }
    }
    return read.values;
  }

 private:
  struct Read {
    std::shared_ptr<const Mapping> memory;
    std::span<const std::byte> values;
  };
  const std::string directory_;
  const std::shared_ptr<const Schema> schema_;
  mutable std::mutex mutex_;  // guards the members below
  mutable std::map<std::size_t, Read> read_;
};

Windows::Values windows_of_file(const std::string& path) {
  try {
    const auto json = nlohmann::json::parse(text_of(path));
    auto values = json.at("samples").get<Windows::Values>();
    for (const auto& starts : json.at("starts"))
      for (const auto& start : starts) values.push_back(start.get<std::int64_t>());
    return values;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::corrupt, error.what(), path);
  }
}

}  // namespace

std::shared_ptr<const Coordinates> file_coordinates(std::string directory,
                                                    std::shared_ptr<const Schema> schema) {
  return std::make_shared<FileCoordinates>(std::move(directory), std::move(schema));
}

std::shared_ptr<const Windows> file_windows(const std::string& path,
                                            std::shared_ptr<const Schema> schema,
                                            std::int64_t samples) {
  return std::make_shared<Windows>(std::move(schema), samples,
                                   [json = path + ".json"] { return windows_of_file(json); });
}

}  // namespace batchfs::reader
