#include "fs/generations/generations.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"

namespace batchfs {

namespace {

/// Names that are given up without the lock.
constexpr std::size_t kNamesAtATime = 1024;

std::string last_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Generations::Generations(Reading first, KnownInodes& known, std::size_t max_names,
                         std::function<void()> on_crowded)
    : known_(known), max_names_(max_names), on_crowded_(std::move(on_crowded)) {
  // An earlier daemon may have read the store again and died before the kernel heard of it.
  if (known_.has_given()) root_rounds_ = kRootRounds;
  known_.keep_only(first.number);
  generations_[first.number] = {std::move(first.files), first.time};
}

std::size_t Generations::size() const {
  const std::lock_guard lock(mutex_);
  return generations_.size();
}

std::size_t Generations::kernel_names() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

void Generations::check_room() const {
  const std::lock_guard lock(mutex_);
  if (generations_.size() >= kMaxGenerations)
    throw Error(ErrorCode::not_supported,
                fmt::format("programs still use {} earlier states of the store; close their files "
                            "and leave the mount's directories, or mount the store once more",
                            generations_.size() - 1));
}

void Generations::add(Reading newest) {
  const std::lock_guard lock(mutex_);
  newest.files->set_passthrough(passthrough_);
  generations_[newest.number] = {std::move(newest.files), newest.time};
  root_rounds_ = kRootRounds;
}

void Generations::set_passthrough(bool on) {
  const std::lock_guard lock(mutex_);
  passthrough_ = on;
  generations_.rbegin()->second.files->set_passthrough(on);
}

Generations::Reading Generations::newest() const {
  const std::lock_guard lock(mutex_);
  const auto& [number, newest] = *generations_.rbegin();
  return {newest.files, number, newest.time};
}

/// The root and the control files belong to the newest generation.
Generations::Found Generations::of(Ino ino) const {
  if (is_common(ino)) return {newest(), ino};
  const std::lock_guard lock(mutex_);
  const auto file = known_.find(ino);
  if (!file) return {};
  const auto it = generations_.find(file->reading);
  if (it == generations_.end()) return {};
  return {{it->second.files, file->reading, it->second.time}, file->number};
}

Generations::Found Generations::must_have(Ino ino) const {
  Found found = of(ino);
  if (found.files == nullptr)
    throw Error(ErrorCode::stale,
                "of an earlier state of the store, which nobody used any more; open it again");
  return found;
}

Inode Generations::inode_of(const StateFiles::Found& found, const Found& at) const {
  Inode inode{static_cast<const Attributes&>(found)};
  inode.ino = static_cast<Ino>(found.number);  // where it is a common one
  inode.shown = shown_number(at.number, found.number);
  inode.time = is_common(found.number) ? 0 : at.time;  // they have the mount's
  return inode;
}

/// Called with mutex_ held. Nothing for a name of the root, which give_up_common() has.
std::optional<Generations::Outdated> Generations::outdated_name(
    const KnownInodes::File& file) const {
  const auto it = generations_.find(file.reading);
  if (it == generations_.end()) return std::nullopt;
  const std::optional<FileNumber> up = it->second.files->parent(file.number);
  if (!up || *up == kRootIno) return std::nullopt;
  const std::optional<Ino> parent =
      is_common(*up) ? std::optional(static_cast<Ino>(*up)) : known_.find({file.reading, *up});
  return parent ? std::optional(Outdated{it->second.files, file.number, *parent}) : std::nullopt;
}

/// Does the kernel know this name of the root in an older reading? Called with mutex_ held.
bool Generations::has_older(const std::string& root_name) const {
  for (auto it = generations_.begin(); std::next(it) != generations_.end(); ++it) {
    const auto found = it->second.files->lookup(kRootIno, root_name);
    if (found && !is_common(found->number) && known_.find({it->first, found->number})) return true;
  }
  return false;
}

/// Gives up the names in the root, and names whose lookup failed. Where no older reading has a name
/// of the root, and so always after a takeover, the name need not go: a current directory or an
/// open file would lose its path.
void Generations::give_up_common(const NameChanges& changes) {
  std::vector<std::pair<Ino, std::string>> absent;
  bool roots = false;
  {
    const std::lock_guard lock(mutex_);
    roots = std::exchange(root_rounds_, std::max(root_rounds_ - 1, 0)) > 0;
    for (auto it = generations_.begin(); std::next(it) != generations_.end(); ++it)
      for (auto& each : std::exchange(it->second.absent, {})) absent.push_back(each);
  }
  if (roots)
    newest().files->list(kRootIno, 0,
                         [&](const std::string& name, FileNumber, bool, std::uint64_t) {
                           const bool older = [&] {
                             const std::lock_guard lock(mutex_);
                             return has_older(name);
                           }();
                           (older ? changes.forget : changes.expire)(kRootIno, name);
                           return true;
                         });
  for (const auto& [directory, name] : absent) changes.forget(directory, name);
}

void Generations::give_up_older(const NameChanges::Call& forget) {
  std::uint32_t position = 0;
  do {
    std::vector<Outdated> some;
    {
      const std::lock_guard lock(mutex_);
      const std::uint32_t newest = generations_.rbegin()->first;
      if (known_.size() == known_.count(newest)) return;
      position = known_.visit(position, [&](Ino, const KnownInodes::File& file) {
        if (file.reading == newest) return true;
        if (auto name = outdated_name(file)) some.push_back(std::move(*name));
        return some.size() < kNamesAtATime;
      });
    }
    for (const Outdated& each : some) forget(each.parent, last_name(each.files->path(each.file)));
  } while (position != 0);
}

/// Files alone, unless there are twice as many names as should be: a directory that somebody is in
/// would lose its name.
void Generations::give_up_crowd(const NameChanges::Call& forget) {
  std::size_t left = 0;
  bool directories = false;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t count = known_.count(generations_.rbegin()->first);
    if (count > max_names_) left = count - max_names_ / 4 * 3;
    directories = count / 2 > max_names_;
  }
  const std::uint32_t start = crowd_position_;
  for (bool wrapped = false; left > 0 && !(wrapped && crowd_position_ >= start);) {
    std::vector<Outdated> some;
    {
      const std::lock_guard lock(mutex_);
      const auto& [newest, generation] = *generations_.rbegin();
      crowd_position_ = known_.visit(crowd_position_, [&](Ino, const KnownInodes::File& file) {
        if (file.reading != newest) return true;
        if (!directories && generation.files->is_directory(file.number)) return true;
        if (auto name = outdated_name(file)) some.push_back(std::move(*name));
        return some.size() < std::min(left, kNamesAtATime);
      });
      if (crowd_position_ == 0 && std::exchange(wrapped, true)) left = some.size();
    }
    for (const Outdated& each : some) forget(each.parent, last_name(each.files->path(each.file)));
    left -= some.size();
  }
}

void Generations::give_up_names(const NameChanges& changes) {
  give_up_common(changes);
  give_up_older(changes.forget);
  give_up_crowd(changes.forget);
}

std::size_t Generations::drop_unused() {
  std::vector<std::shared_ptr<StateFiles>> dropped;  // end without the lock
  const std::lock_guard lock(mutex_);
  for (auto it = generations_.begin(); std::next(it) != generations_.end();) {
    // New references come from here (under the lock) or from an existing reference, so a count of
    // one cannot grow meanwhile.
    if (known_.count(it->first) > 0 || it->second.files.use_count() > 1) {
      ++it;
      continue;
    }
    dropped.push_back(std::move(it->second.files));
    it = generations_.erase(it);
  }
  return generations_.size() - 1;
}

void Generations::wait_for_forgotten(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  forgotten_.wait_for(lock, limit,
                      [this, before = forgotten_count_] { return forgotten_count_ != before; });
}

std::optional<Inode> Generations::lookup(Ino parent, std::string_view name) {
  const Found at = must_have(parent);
  const auto found = at.files->lookup(at.file, name);
  std::optional<Inode> inode;
  if (found) inode = inode_of(*found, at);
  if (found && is_common(found->number)) return inode;
  bool crowded = false;
  {
    const std::lock_guard lock(mutex_);
    const bool outdated = at.number != generations_.rbegin()->first;
    if (!found) {
      auto& absent = generations_.at(at.number).absent;
      if (outdated && absent.size() < kMaxAbsent) absent.emplace(parent, name);
      return inode;
    }
    inode->outdated = outdated;
    const std::size_t before = known_.size();
    inode->ino = known_.refer({at.number, found->number});
    // Again and again while it grows, not with each name.
    crowded = known_.size() > before && before >= max_names_ &&
              (before - max_names_) % std::max<std::size_t>(1, max_names_ / 4) == 0;
  }
  if (crowded && on_crowded_) on_crowded_();
  return inode;
}

void Generations::forget(Ino ino, std::uint64_t references) {
  if (is_common(ino)) return;
  const std::lock_guard lock(mutex_);
  if (!known_.forget(ino, references)) return;
  ++forgotten_count_;
  forgotten_.notify_all();
}

std::optional<Inode> Generations::attributes(Ino ino) const {
  const Found at = must_have(ino);
  const auto found = at.files->attributes(at.file);
  if (!found) return std::nullopt;
  Inode inode = inode_of(*found, at);
  inode.ino = ino;
  return inode;
}

void Generations::list(Ino directory, std::uint64_t offset, const Visit& visit) const {
  const Found at = must_have(directory);
  at.files->list(
      at.file, offset,
      [&](const std::string& name, FileNumber number, bool is_directory, std::uint64_t next) {
        return visit({name, shown_number(at.number, number), is_directory,
                      !is_directory && at.files->link_target(number), next});
      });
}

std::optional<std::uint64_t> Generations::parent_shown(Ino ino) const {
  const Found at = of(ino);
  if (at.files == nullptr) return std::nullopt;
  const std::optional<FileNumber> up = at.files->parent(at.file);
  return up ? std::optional(shown_number(at.number, *up)) : std::nullopt;
}

std::string Generations::path(Ino ino) const {
  const Found at = of(ino);
  return at.files != nullptr ? at.files->path(at.file) : std::string();
}

std::optional<std::string> Generations::link_target(Ino ino) const {
  const Found at = must_have(ino);
  return at.files->link_target(at.file);
}

WaiterId Generations::open(Ino ino, OpenDone done) {
  Found at;
  try {
    at = must_have(ino);
  } catch (...) {
    done(nullptr, std::current_exception());
    return 0;
  }
  return at.files->open(at.file, [files = at.files, done = std::move(done)](
                                     std::shared_ptr<OpenFile> file, std::exception_ptr error) {
    done(std::move(file), error);  // `files` lives until then
  });
}

}  // namespace batchfs
