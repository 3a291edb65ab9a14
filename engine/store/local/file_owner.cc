#include "engine/store/local/file_owner.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include <grp.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace batchfs {

namespace {

constexpr gid_t kNobody = 65534;
constexpr int kMaxGroups = 65536;  // NGROUPS_MAX of Linux

std::vector<gid_t> own_groups() {
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(count, 0)));
  return groups;
}

/// The groups of a user that the system knows, the first one first; none of another.
std::vector<gid_t> groups_of(uid_t user) {
  std::string text(1 << 16, '\0');
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(user, &entry, text.data(), text.size(), &found) != 0 || found == nullptr)
    return {};
  int count = 64;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  while (::getgrouplist(found->pw_name, found->pw_gid, groups.data(), &count) < 0 &&
         count <= kMaxGroups)
    groups.resize(static_cast<std::size_t>(count));
  groups.resize(static_cast<std::size_t>(std::min(count, static_cast<int>(groups.size()))));
  return groups;
}

}  // namespace

FileOwner FileOwner::of(int directory) {
  FileOwner owner;
  struct stat status {};
  if (::geteuid() != 0 || ::fstat(directory, &status) != 0 || status.st_uid == 0) return owner;
  owner.own_ = {::geteuid(), ::getegid(), own_groups()};
  std::vector<gid_t> groups = groups_of(status.st_uid);
  const gid_t first = groups.empty() ? kNobody : groups.front();
  owner.other_ = Identity{status.st_uid, first, std::move(groups)};
  const bool can = take(*owner.other_);
  take(owner.own_);
  if (!can) owner.other_.reset();
  return owner;
}

/// Changes this thread's identity only. setgroups(3) of the C library would change all threads: the
/// system call is made directly.
bool FileOwner::take(const Identity& identity) {
  if (::syscall(SYS_setgroups, identity.groups.size(), identity.groups.data()) != 0) return false;
  ::setfsgid(identity.group);
  ::setfsuid(identity.user);
  // They return the previous identity only: another call that changes nothing shows whether they
  // succeeded.
  constexpr auto kNone = static_cast<uid_t>(-1);
  return static_cast<gid_t>(::setfsgid(kNone)) == identity.group &&
         static_cast<uid_t>(::setfsuid(kNone)) == identity.user;
}

FileOwner::Scope::Scope(const FileOwner& owner) : owner_(owner) {
  if (!owner_.other_ || take(*owner_.other_)) return;
  take(owner_.own_);
  throw Error(ErrorCode::no_memory, "the system could not take the identity of the store's owner");
}

FileOwner::Scope::~Scope() {
  if (!owner_.other_) return;
  const int before = errno;
  // Without memory for it the thread keeps fewer permissions than it had; the next scope tries
  // again.
  take(owner_.own_);
  errno = before;
}

}  // namespace batchfs
