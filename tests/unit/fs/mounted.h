#pragma once
// A file system without a mount: lookups by path, whole reads, whole listings.

#include <future>

#include <gtest/gtest.h>

#include "fs/file_system.h"
#include "fs/generations/generations.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {

struct Listed {
  std::string name;
  FileNumber number;
  bool directory;
  std::uint64_t next;
};

class Mounted {
 public:
  explicit Mounted(const MemoryData& data, const std::vector<std::string>& views = {}) {
    const auto hierarchy = std::make_shared<const Hierarchy>(data.hierarchy);
    const auto dataset = std::make_shared<const Dataset>(data.store, *hierarchy);
    std::vector<std::shared_ptr<const View>> parsed;
    for (const std::string& view : views)
      parsed.push_back(View::parse(dataset, view, "v", "view.json"));
    engine_ = std::make_unique<Engine>(Engine::Options{.threads = 2, .memory = 256 << 20}, log_);
    files_ = std::make_shared<FileSystem>(
        FileSystem::Options{"memory://store", {{"memory", "256M"}}}, data.store, hierarchy, dataset,
        std::move(parsed), *engine_, log_);
    served_ = std::make_unique<Generations>(Generations::Reading{files_}, known_);
  }

  FileSystem& files() { return *files_; }
  /// The files as the kernel sees them.
  Files& served() { return *served_; }
  Ino ino_of(const std::string& path) {
    Ino at = kRootIno;
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      at = served_->lookup(at, path.substr(begin, end - begin)).value().ino;
      begin = end + 1;
    }
    return at;
  }
  Engine& engine() { return *engine_; }
  Log& log() { return log_; }

  /// "arrays/t/values.npy" -> its attributes; nullopt for ENOENT.
  std::optional<StateFiles::Found> find(const std::string& path) const {
    std::optional<StateFiles::Found> at = files_->attributes(kRootIno);
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      at = files_->lookup(at->number, path.substr(begin, end - begin));
      if (!at) return at;
      begin = end + 1;
    }
    return at;
  }

  /// The entries of a directory, `page` at a time as the kernel asks for them.
  std::vector<Listed> list(FileNumber directory, std::size_t page = SIZE_MAX) const {
    std::vector<Listed> all;
    std::uint64_t offset = 0;
    for (std::size_t got = page; got == page;) {
      got = 0;
      files_->list(
          directory, offset,
          [&](const std::string& name, FileNumber number, bool is_directory, std::uint64_t next) {
            if (got == page) return false;
            all.push_back({name, number, is_directory, next});
            offset = next;
            ++got;
            return true;
          });
    }
    return all;
  }
  std::vector<std::string> names(const std::string& path) const {
    std::vector<std::string> names;
    for (const Listed& entry : list(find(path).value().number)) names.push_back(entry.name);
    return names;
  }

  /// Opens a file and waits for it. Throws its error.
  std::shared_ptr<OpenFile> open(FileNumber number) const {
    std::promise<std::shared_ptr<OpenFile>> promise;
    files_->open(number, [&](std::shared_ptr<OpenFile> file, std::exception_ptr error) {
      if (error)
        promise.set_exception(error);
      else
        promise.set_value(std::move(file));
    });
    return promise.get_future().get();
  }

  static std::string read(OpenFile& file, std::uint64_t offset, std::uint64_t size) {
    std::promise<std::string> promise;
    file.read(offset, size, [&](std::span<const OpenFile::Bytes> bytes, std::exception_ptr error) {
      if (error)
        promise.set_exception(error);
      else
        promise.set_value(text_of(bytes));
    });
    return promise.get_future().get();
  }
  static std::string text_of(std::span<const OpenFile::Bytes> runs) {
    std::string text;
    for (const OpenFile::Bytes& run : runs)
      text.append(reinterpret_cast<const char*>(run.data()), run.size());
    return text;
  }

  /// All bytes, in pieces of an awkward size.
  std::string read(FileNumber number, std::uint64_t piece = 100'003) const {
    const auto file = open(number);
    std::string all;
    for (;;) {
      const std::string bytes = read(*file, all.size(), piece);
      if (bytes.empty()) return all;
      all += bytes;
    }
  }
  std::string read(const std::string& path) const { return read(find(path).value().number); }

 private:
  Log log_;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<FileSystem> files_;
  KnownInodes known_;
  std::unique_ptr<Generations> served_;
};

/// The parts of an .npy file, read by the rules of numpy.lib.format alone.
struct ParsedNpy {
  std::string header;  // the dictionary, as text
  std::string data;
  int version = 0;
};
inline ParsedNpy parse_npy(const std::string& file) {
  ParsedNpy npy;
  EXPECT_EQ(file.substr(0, 6), "\x93NUMPY");
  npy.version = file.at(6);
  EXPECT_EQ(file.at(7), 0);
  const std::size_t digits = npy.version == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = 0; i < digits; ++i)
    length |= static_cast<std::size_t>(static_cast<unsigned char>(file.at(8 + i))) << (8 * i);
  const std::size_t begin = 8 + digits, end = begin + length;
  EXPECT_LE(end, file.size());
  EXPECT_EQ(end % 64, 0u);
  EXPECT_EQ(file.at(end - 1), '\n');
  npy.header = file.substr(begin, file.find_last_not_of(" \n", end - 1) + 1 - begin);
  npy.data = file.substr(end);
  return npy;
}

template <class T>
std::vector<T> numbers(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace batchfs
