#pragma once
// Whose permissions count when files of a local store are opened.
//
// A daemon of root may read every file of the machine, and shows their contents to others. The
// owner of a store decides its contents, so root opens its files with the owner's user, groups and
// nothing more: a file that the owner may not read is refused. The kernel keeps these identities
// for each thread; only the thread that opens a file takes them, during the open.

#include <optional>
#include <vector>

#include <sys/types.h>

namespace batchfs {

/// Thread-safe.
class FileOwner {
 public:
  /// The process's own identity: nothing changes.
  FileOwner() = default;
  /// The owner of `directory` where the process is root and the owner is not; else the process
  /// itself, also where the process may not change its identity (no CAP_SETUID or CAP_SETGID, a
  /// user that the container does not know).
  static FileOwner of(int directory);

  /// While it lives, the calling thread has the owner's permissions on files. Scopes are not
  /// nested.
  class Scope {
   public:
    explicit Scope(const FileOwner& owner);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const FileOwner& owner_;
  };
  /// Throws no_memory when the kernel cannot change the thread's identity.
  [[nodiscard]] Scope enter() const { return Scope(*this); }

  bool is_another() const { return other_.has_value(); }

 private:
  struct Identity {
    uid_t user;
    gid_t group;
    std::vector<gid_t> groups;
  };
  static bool take(const Identity& identity);

  Identity own_{};
  std::optional<Identity> other_;
};

}  // namespace batchfs
