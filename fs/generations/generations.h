#pragma once
// A mount of a store that grows: its generations.
//
// A generation is one reading of the store: its metadata, the views made from it, and the files
// that these are. The newest one answers lookups from the root. Older ones live on for the programs
// that use them: files that are open, directories that are open or current, mappings. Readings are
// numbered through the session, and so are inodes (known_inodes.h): a number means one file, also
// for a daemon that takes over, which has the newest reading only.
//
// The kernel counts as a user for every inode that it has looked up and not forgotten, and keeps
// names that nobody uses. give_up_names() names those that it should give up; when it has, and no
// request or reader of the hand-off holds the generation, drop_unused() drops it. A name is
// repeated until the kernel has forgotten its inode: the kernel may learn it right after it was
// asked to give it up.
//
// Names of the newest generation are given up too where the kernel keeps more than `max_names`.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/files.h"
#include "fs/generations/known_inodes.h"
#include "fs/state_files.h"

namespace batchfs {

/// Thread-safe.
class Generations final : public Files {
 public:
  static constexpr std::size_t kMaxGenerations = 8;

  /// One reading of the store.
  struct Reading {
    std::shared_ptr<StateFiles> files;
    std::uint32_t number = kFirstReading;
    std::time_t time = 0;
  };
  /// `known` outlives it: inodes of this reading that earlier daemons looked up stay known, and the
  /// kernel is to give up those of earlier readings. `on_crowded` is called, without a lock, when
  /// the kernel knows more than `max_names` names: it should have give_up_names() called, from
  /// another thread.
  Generations(Reading first, KnownInodes& known, std::size_t max_names = KnownInodes::kMax / 2,
              std::function<void()> on_crowded = {});

  /// Throws not_supported, with advice, if there are kMaxGenerations.
  void check_room() const;
  /// Makes it the newest. Precondition: its number is higher than any before.
  void add(Reading newest);

  /// Requests to the kernel about names, each with the inode of its directory.
  struct NameChanges {
    using Call = std::function<void(Ino parent, const std::string& name)>;
    Call forget;
    /// Look it up again at its next use: its present users may keep it.
    Call expire;
  };
  /// Calls `changes` for the names that the kernel should not use any more.
  void give_up_names(const NameChanges& changes);
  /// Drops unused older generations. Returns how many older ones remain.
  std::size_t drop_unused();
  /// Waits until the kernel has forgotten an older generation, at most `limit`.
  void wait_for_forgotten(std::chrono::milliseconds limit);
  /// How many there are, the newest included.
  std::size_t size() const;
  /// How many inodes the kernel knows.
  std::size_t kernel_names() const;

  std::optional<Inode> lookup(Ino parent, std::string_view name) override;
  void forget(Ino ino, std::uint64_t references) override;
  /// These throw stale for an inode of a generation that is gone, but for parent_shown() and
  /// path().
  std::optional<Inode> attributes(Ino ino) const override;
  void list(Ino directory, std::uint64_t offset, const Visit& visit) const override;
  std::optional<std::uint64_t> parent_shown(Ino ino) const override;
  std::string path(Ino ino) const override;
  std::optional<std::string> link_target(Ino ino) const override;
  WaiterId open(Ino ino, OpenDone done) override;
  void cancel(WaiterId waiter) override { newest().files->cancel(waiter); }
  const MemoryFiles& memory_files() const override { return newest().files->memory_files(); }
  void set_passthrough(bool on) override;
  std::uint64_t total_bytes() const override { return newest().files->total_bytes(); }

 private:
  struct Generation {
    std::shared_ptr<StateFiles> files;
    std::time_t time = 0;
    /// Names that were looked up in vain when it was not the newest any more: the kernel keeps them
    /// too, and with them their directory.
    std::set<std::pair<Ino, std::string>> absent{};
  };
  static constexpr std::size_t kMaxAbsent = 4096;
  /// A file of a reading. `files` is null if the reading is gone.
  struct Found : Reading {
    FileNumber file = 0;
  };
  Found of(Ino ino) const;
  Found must_have(Ino ino) const;
  Reading newest() const;
  /// A name of `file` in the directory `parent`.
  struct Outdated {
    std::shared_ptr<StateFiles> files;
    FileNumber file;
    Ino parent;
  };
  std::optional<Outdated> outdated_name(const KnownInodes::File& file) const;
  bool has_older(const std::string& root_name) const;
  void give_up_common(const NameChanges& changes);
  void give_up_older(const NameChanges::Call& forget);
  void give_up_crowd(const NameChanges::Call& forget);
  Inode inode_of(const StateFiles::Found& found, const Found& at) const;

  KnownInodes& known_;
  const std::size_t max_names_;
  const std::function<void()> on_crowded_;

  // guards the members below and known_; no other lock is taken while it is held
  mutable std::mutex mutex_;
  std::map<std::uint32_t, Generation> generations_;  // by the reading's number: the last is newest
  std::condition_variable forgotten_;
  std::uint64_t forgotten_count_ = 0;  // of generations
  /// Remaining rounds in which the kernel may have the root's names from an earlier reading.
  int root_rounds_ = 0;
  static constexpr int kRootRounds = 3;
  std::uint32_t crowd_position_ = 0;  // of KnownInodes::visit()
  bool passthrough_ = false;
};

}  // namespace batchfs
