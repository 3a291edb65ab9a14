#pragma once
// A mount of a store that grows: its generations.
//
// A generation is one reading of the store: its metadata, the views made from it, and the files
// that these are. The newest one answers lookups from the root. Older ones live on for the programs
// that use them: files that are open, directories that are open or current, mappings. Each has a
// tag, which its inode numbers carry (ino.h), so that a number means one file for as long as
// anybody knows it.
//
// The kernel counts as a user for every inode that it has looked up and not forgotten, and keeps
// names that nobody uses. take_outdated_names() are those that it should give up; when it has, and
// no request or reader of the hand-off holds the generation, drop_unused() lets it go. A name comes
// again and again until the kernel has forgotten its inode: the kernel may learn it just after it
// was told to give it up.
//
// A generation that an earlier daemon began is never dropped: how many of its inodes the kernel
// knows is not known.

#include <array>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fs/files.h"

namespace batchfs {

/// Thread-safe.
class Generations final : public Files {
 public:
  static constexpr std::size_t kMaxGenerations = 8;

  /// `inherited`: an earlier daemon began it.
  Generations(std::shared_ptr<Files> first, unsigned tag, bool inherited);

  /// A tag for the next generation, below kTags. Throws not_supported with what to do when there
  /// are kMaxGenerations already.
  unsigned free_tag() const;
  /// Makes it the newest. Precondition: `tag` came from free_tag(), and no other one was added
  /// since.
  void add(std::shared_ptr<Files> newest, unsigned tag);

  /// Names that the kernel should not use any more, with the inode of their directory.
  struct Name {
    Ino parent;
    std::string name;
  };
  std::vector<Name> take_outdated_names();
  /// Drops the older generations that nobody uses. Returns how many older ones are left.
  std::size_t drop_unused();
  /// How many there are, the newest included.
  std::size_t size() const;

  std::optional<Attributes> lookup(Ino parent, std::string_view name) override;
  void forget(Ino ino, std::uint64_t references) override;
  /// These throw stale for an inode of a generation that is gone, but for parent() and path().
  std::optional<Attributes> attributes(Ino ino) const override;
  void list(Ino directory, std::uint64_t offset, const Visit& visit) const override;
  std::optional<Ino> parent(Ino ino) const override;
  std::string path(Ino ino) const override;
  std::optional<std::string> link_target(Ino ino) const override;
  WaiterId open(Ino ino, OpenDone done) override;
  void cancel(WaiterId waiter) override { newest()->cancel(waiter); }
  const MemoryFiles& memory_files() const override { return newest()->memory_files(); }
  void set_passthrough(bool on) override;
  std::uint64_t total_bytes() const override { return newest()->total_bytes(); }

 private:
  struct Generation {
    std::shared_ptr<Files> files;                    // null: there is none with this tag
    std::unordered_map<Ino, std::uint64_t> known{};  // references of the kernel, by tagged inode
    bool inherited = false;
    /// Names that were looked up in vain when it was not the newest any more: the kernel keeps them
    /// too, and with them their directory.
    std::set<std::pair<Ino, std::string>> absent{};
  };
  static constexpr std::size_t kMaxAbsent = 4096;
  struct Found {
    std::shared_ptr<Files> files;  // null: gone
    unsigned tag = 0;
  };
  Found of(Ino ino) const;
  Found must_have(Ino ino) const;
  std::shared_ptr<Files> newest() const { return of(kRootIno).files; }
  std::size_t count() const;

  mutable std::mutex mutex_;  // guards what follows; no other lock is taken with it held
  std::array<Generation, kTags> generations_;  // by tag
  unsigned newest_;                            // a tag
  /// How often the root's names are still outdated: each time the kernel drops what it keeps of the
  /// newest generation, too.
  int root_rounds_ = 0;
  static constexpr int kRootRounds = 3;
  bool passthrough_ = false;
};

}  // namespace batchfs
