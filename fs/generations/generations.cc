#include "fs/generations/generations.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"

namespace batchfs {

namespace {

std::string last_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Generations::Generations(std::shared_ptr<Files> first, unsigned tag, bool inherited)
    : newest_(tag) {
  generations_[tag] = {std::move(first), {}, inherited};
}

std::size_t Generations::count() const {
  return static_cast<std::size_t>(
      std::count_if(generations_.begin(), generations_.end(),
                    [](const Generation& each) { return each.files != nullptr; }));
}

std::size_t Generations::size() const {
  const std::lock_guard lock(mutex_);
  return count();
}

unsigned Generations::free_tag() const {
  const std::lock_guard lock(mutex_);
  if (count() >= kMaxGenerations)
    throw Error(ErrorCode::not_supported,
                fmt::format("programs still use {} earlier states of the store; close their files "
                            "and leave the mount's directories, or mount the store once more",
                            count() - 1));
  // Round about, so that a tag is used again as late as possible.
  unsigned tag = newest_;
  do {
    tag = (tag + 1) % kTags;
  } while (generations_[tag].files != nullptr);
  return tag;
}

void Generations::add(std::shared_ptr<Files> newest, unsigned tag) {
  const std::lock_guard lock(mutex_);
  newest->set_passthrough(passthrough_);
  generations_[tag] = {std::move(newest), {}, false};
  newest_ = tag;
  root_rounds_ = kRootRounds;
}

void Generations::set_passthrough(bool on) {
  const std::lock_guard lock(mutex_);
  passthrough_ = on;
  generations_[newest_].files->set_passthrough(on);
}

/// An inode without a tag of its own is of the newest.
Generations::Found Generations::of(Ino ino) const {
  const std::lock_guard lock(mutex_);
  const unsigned tag = ino <= kMaxCommonIno ? newest_ : tag_of(ino);
  return {generations_[tag].files, tag};
}

Generations::Found Generations::must_have(Ino ino) const {
  Found found = of(ino);
  if (found.files == nullptr)
    throw Error(ErrorCode::stale,
                "of an earlier state of the store, which nobody used any more; open it again");
  return found;
}

std::vector<Generations::Name> Generations::take_outdated_names() {
  struct Older {
    Found found;
    std::vector<Ino> inos;
  };
  std::vector<Older> older;
  std::vector<Name> names, absent;
  bool roots = false;
  {
    const std::lock_guard lock(mutex_);
    roots = std::exchange(root_rounds_, std::max(root_rounds_ - 1, 0)) > 0;
    for (unsigned tag = 0; tag < kTags; ++tag) {
      Generation& each = generations_[tag];
      if (tag == newest_ || each.files == nullptr) continue;
      older.push_back({{each.files, tag}, {}});
      for (const auto& [directory, name] : each.absent) absent.push_back({directory, name});
      each.absent.clear();
      for (const auto& [ino, references] : each.known) older.back().inos.push_back(ino);
    }
  }
  // First what every path begins with, which the kernel may know from an earlier daemon.
  if (roots)
    newest()->list(kRootIno, 0, [&names](const std::string& name, Ino, bool, std::uint64_t) {
      names.push_back({kRootIno, name});
      return true;
    });
  for (const Older& each : older)
    for (const Ino ino : each.inos) {
      const std::optional<Ino> up = each.found.files->parent(untagged(ino));
      if (!up || *up == kRootIno) continue;
      names.push_back(
          {tagged(*up, each.found.tag), last_name(each.found.files->path(untagged(ino)))});
    }
  names.insert(names.end(), absent.begin(), absent.end());
  return names;
}

std::size_t Generations::drop_unused() {
  std::vector<std::shared_ptr<Files>> dropped;  // end without the lock
  const std::lock_guard lock(mutex_);
  for (unsigned tag = 0; tag < kTags; ++tag) {
    Generation& each = generations_[tag];
    // New references come from here (under the lock) or from an existing reference, so a count of
    // one cannot grow meanwhile.
    if (tag == newest_ || each.files == nullptr || each.inherited || !each.known.empty() ||
        each.files.use_count() > 1)
      continue;
    dropped.push_back(std::move(each.files));
    each = {};
  }
  return count() - 1;
}

std::optional<Attributes> Generations::lookup(Ino parent, std::string_view name) {
  const Found at = must_have(parent);
  std::optional<Attributes> found = at.files->lookup(untagged(parent), name);
  if (found) found->ino = tagged(found->ino, at.tag);
  if (found && found->ino <= kMaxCommonIno) return found;
  const std::lock_guard lock(mutex_);
  if (!found) {
    auto& absent = generations_[at.tag].absent;
    if (at.tag != newest_ && absent.size() < kMaxAbsent) absent.emplace(parent, name);
    return found;
  }
  found->outdated = at.tag != newest_;
  ++generations_[at.tag].known[found->ino];
  return found;
}

void Generations::forget(Ino ino, std::uint64_t references) {
  if (ino <= kMaxCommonIno) return;
  const std::lock_guard lock(mutex_);
  auto& known = generations_[tag_of(ino)].known;
  const auto it = known.find(ino);
  if (it == known.end()) return;  // an earlier daemon's
  if (it->second > references)
    it->second -= references;
  else
    known.erase(it);
}

std::optional<Attributes> Generations::attributes(Ino ino) const {
  const Found at = must_have(ino);
  std::optional<Attributes> found = at.files->attributes(untagged(ino));
  if (found) found->ino = tagged(found->ino, at.tag);
  return found;
}

void Generations::list(Ino directory, std::uint64_t offset, const Visit& visit) const {
  const Found at = must_have(directory);
  at.files->list(untagged(directory), offset,
                 [&](const std::string& name, Ino ino, bool is_directory, std::uint64_t next) {
                   return visit(name, tagged(ino, at.tag), is_directory, next);
                 });
}

std::optional<Ino> Generations::parent(Ino ino) const {
  const Found at = of(ino);
  if (at.files == nullptr) return std::nullopt;
  const std::optional<Ino> found = at.files->parent(untagged(ino));
  return found ? std::optional(tagged(*found, at.tag)) : found;
}

std::string Generations::path(Ino ino) const {
  const Found at = of(ino);
  return at.files != nullptr ? at.files->path(untagged(ino)) : std::string();
}

std::optional<std::string> Generations::link_target(Ino ino) const {
  return must_have(ino).files->link_target(untagged(ino));
}

WaiterId Generations::open(Ino ino, OpenDone done) {
  Found at;
  try {
    at = must_have(ino);
  } catch (...) {
    done(nullptr, std::current_exception());
    return 0;
  }
  return at.files->open(untagged(ino),
                        [files = at.files, done = std::move(done)](std::shared_ptr<OpenFile> file,
                                                                   std::exception_ptr error) {
                          done(std::move(file), error);  // `files` lives until then
                        });
}

}  // namespace batchfs
