#pragma once
// The kinds of open files.

#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "engine/view/batch_coordinate.h"
#include "fs/file_system.h"

namespace batchfs {

/// A text as it was when the file was opened.
class TextFile final : public OpenFile {
 public:
  TextFile(std::string text, Caching caching) : text_(std::move(text)), caching_(caching) {}
  Caching caching() const override { return caching_; }
  void read(std::uint64_t offset, std::uint64_t size, ReadDone done) override;

 private:
  const std::string text_;
  const Caching caching_;
};

/// Bytes in memory that lives as long as `owner`, behind a header.
class HeldFile final : public OpenFile {
 public:
  HeldFile(std::string header, std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : header_(std::move(header)), bytes_(bytes), owner_(std::move(owner)) {}
  Caching caching() const override { return Caching::kernel; }
  void read(std::uint64_t offset, std::uint64_t size, ReadDone done) override;

 private:
  const std::string header_;
  const std::span<const std::byte> bytes_;
  const std::shared_ptr<const void> owner_;
};

/// The values of a coordinate of a batch, made as they are read.
class CoordinateFile final : public OpenFile {
 public:
  /// `owner` holds what the coordinate refers to.
  CoordinateFile(BatchCoordinate values, std::shared_ptr<const void> owner)
      : values_(std::move(values)), owner_(std::move(owner)) {}
  Caching caching() const override { return Caching::kernel; }
  void read(std::uint64_t offset, std::uint64_t size, ReadDone done) override;

 private:
  const BatchCoordinate values_;
  const std::shared_ptr<const void> owner_;
};

/// A complete batch file or chunk.
class SealedFile final : public OpenFile {
 public:
  /// `owner` holds `file`.
  SealedFile(const MemoryFile* file, std::shared_ptr<const void> owner)
      : file_(file), owner_(std::move(owner)) {}
  const MemoryFile* memory_file() const override { return file_; }
  void read(std::uint64_t offset, std::uint64_t size, ReadDone done) override;

 private:
  const MemoryFile* file_;
  std::shared_ptr<const void> owner_;
};

/// values.npy: a whole array, of any size, decoded as it is read.
class ValuesFile final : public OpenFile {
 public:
  ValuesFile(Engine& engine, std::shared_ptr<const Array> array, std::string header);
  void read(std::uint64_t offset, std::uint64_t size, ReadDone done) override;

 private:
  Engine& engine_;
  std::shared_ptr<const Array> array_;
  const std::string header_;
  const std::uint64_t size_;
  const std::uint64_t ahead_bytes_;  // that are decoded ahead of a sequential reader
  bool goes_on(std::uint64_t offset, std::uint64_t end);
  void read_ahead(std::uint64_t first, std::uint64_t last);

  std::mutex mutex_;                 // guards what follows. A leaf
  std::uint64_t next_ = UINT64_MAX;  // offset that a sequential reader reads next
  std::uint64_t ahead_ = 0;          // elements up to here are being decoded for it
};

}  // namespace batchfs
