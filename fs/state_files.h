#pragma once
// The files of one reading of the store, by number. All but control files are immutable.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fs/files.h"

namespace batchfs {

/// Thread-safe.
class StateFiles {
 public:
  virtual ~StateFiles() = default;

  struct Found : Attributes {
    FileNumber number = 0;
  };
  virtual std::optional<Found> lookup(FileNumber parent, std::string_view name) const = 0;
  virtual std::optional<Found> attributes(FileNumber number) const = 0;
  /// Same as attributes(), without the size.
  virtual bool is_directory(FileNumber number) const = 0;

  /// Like Tree::list, with whether each entry is a directory.
  using Visit = std::function<bool(const std::string& name, FileNumber number, bool directory,
                                   std::uint64_t next)>;
  virtual void list(FileNumber directory, std::uint64_t offset, const Visit& visit) const = 0;
  virtual std::optional<FileNumber> parent(FileNumber number) const = 0;
  /// The path below the root; "" for the root and for no file.
  virtual std::string path(FileNumber number) const = 0;
  /// The target of a symbolic link; nullopt for any other file.
  virtual std::optional<std::string> link_target(FileNumber number) const = 0;

  /// Same contract as Files::open().
  virtual WaiterId open(FileNumber number, Files::OpenDone done) = 0;
  virtual void cancel(WaiterId waiter) = 0;

  /// Same contracts as in Files.
  virtual const MemoryFiles& memory_files() const = 0;
  virtual void set_passthrough(bool on) = 0;
  virtual std::uint64_t total_bytes() const = 0;
};

}  // namespace batchfs
