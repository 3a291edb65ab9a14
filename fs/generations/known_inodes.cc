#include "fs/generations/known_inodes.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include <sys/mman.h>
#include <xxhash.h>

#include "engine/base/error.h"
#include "engine/base/system_error.h"

namespace batchfs {

struct KnownInodes::Record {
  std::atomic<Ino> ino;     // 0: free. Written last, removed first
  std::uint64_t low, high;  // the file's number
  std::uint32_t reading;
  std::atomic<std::uint32_t> references;  // UINT32_MAX: that many or more, never forgotten

  FileNumber number() const { return FileNumber{high} << 64 | low; }
};

struct KnownInodes::Memory {
  std::atomic<Ino> last;            // last number used; 0: none yet
  std::atomic<std::uint32_t> used;  // records that have been used, the first ones
  std::byte padding[4096 - 2 * sizeof(std::uint64_t)];  // records begin with a page
  Record records[kMax];
};

const std::size_t KnownInodes::kBytes = sizeof(Memory);

namespace {

void* map(std::size_t bytes, int flags, int fd, std::uint64_t offset) {
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED)
    throw Error(ErrorCode::no_memory, describe_system_error(errno),
                "the memory for the kernel's inodes");
  return memory;
}

std::uint64_t hash_of(Ino ino) { return XXH3_64bits(&ino, sizeof ino); }

std::uint64_t hash_of(const KnownInodes::File& file) {
  return XXH3_64bits_withSeed(&file.number, sizeof file.number, file.reading);
}

}  // namespace

// ---- the index ----

template <class Matches>
std::uint32_t KnownInodes::Index::find(std::uint64_t hash, Matches&& matches) const {
  if (places_.empty()) return kNone;
  const std::size_t mask = places_.size() - 1;
  for (std::size_t at = hash & mask; places_[at] != 0; at = (at + 1) & mask)
    if (matches(places_[at] - 1)) return places_[at] - 1;
  return kNone;
}

template <class HashOf>
void KnownInodes::Index::make_room(HashOf&& hash_of) {
  constexpr std::size_t kFirst = 1024;
  if ((size_ + 1) * 3 <= places_.size() * 2) return;
  std::vector<std::uint32_t> before(std::max(kFirst, places_.size() * 2));
  before.swap(places_);
  size_ = 0;
  for (const std::uint32_t place : before)
    if (place != 0) add(hash_of(place - 1), place - 1);
}

void KnownInodes::Index::add(std::uint64_t hash, std::uint32_t slot) {
  const std::size_t mask = places_.size() - 1;
  std::size_t at = hash & mask;
  while (places_[at] != 0) at = (at + 1) & mask;
  places_[at] = slot + 1;
  ++size_;
}

/// Moves the records after the removed one back to where lookups find them.
template <class HashOf>
void KnownInodes::Index::remove(std::uint64_t hash, std::uint32_t slot, HashOf&& hash_of) {
  const std::size_t mask = places_.size() - 1;
  std::size_t hole = hash & mask;
  while (places_[hole] != slot + 1) hole = (hole + 1) & mask;
  for (std::size_t at = (hole + 1) & mask; places_[at] != 0; at = (at + 1) & mask) {
    const std::size_t home = hash_of(places_[at] - 1) & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    places_[hole] = places_[at];
    hole = at;
  }
  places_[hole] = 0;
  --size_;
}

// ---- the table ----

KnownInodes::KnownInodes()
    : memory_(
          static_cast<Memory*>(map(kBytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}

KnownInodes::KnownInodes(int fd, std::uint64_t offset)
    : memory_(static_cast<Memory*>(map(kBytes, MAP_SHARED | MAP_NORESERVE, fd, offset))) {
  try {
    load();
  } catch (...) {
    ::munmap(memory_, kBytes);
    throw;
  }
}

KnownInodes::~KnownInodes() { ::munmap(memory_, kBytes); }

std::uint64_t KnownInodes::hash_by_ino(std::uint32_t slot) const {
  return hash_of(memory_->records[slot].ino.load());
}

std::uint64_t KnownInodes::hash_by_file(std::uint32_t slot) const {
  const Record& record = memory_->records[slot];
  return hash_of({record.reading, record.number()});
}

void KnownInodes::load() {
  const std::uint32_t used = memory_->used;
  const auto nonsense = [] {
    return Error(ErrorCode::corrupt,
                 "the session's inodes make no sense; unmount it and mount again");
  };
  if (used > kMax) throw nonsense();
  for (std::uint32_t slot = used; slot-- > 0;) {
    const Record& record = memory_->records[slot];
    const Ino ino = record.ino;
    if (ino > memory_->last || (ino != 0 && (ino <= kMaxCommonIno || slot_of(ino) != kNone)))
      throw nonsense();
    if (ino == 0) {
      free_.push_back(slot);
      continue;
    }
    make_room();
    add(slot);
  }
}

void KnownInodes::make_room() {
  by_ino_.make_room([this](std::uint32_t slot) { return hash_by_ino(slot); });
  by_file_.make_room([this](std::uint32_t slot) { return hash_by_file(slot); });
  if (free_.capacity() < memory_->used + 1u) free_.reserve(2 * (memory_->used + 1u));
}

/// Precondition: make_room().
void KnownInodes::add(std::uint32_t slot) {
  ++counts_[memory_->records[slot].reading];
  by_ino_.add(hash_by_ino(slot), slot);
  by_file_.add(hash_by_file(slot), slot);
  ++size_;
}

std::uint32_t KnownInodes::slot_of(Ino ino) const {
  return by_ino_.find(hash_of(ino),
                      [&](std::uint32_t slot) { return memory_->records[slot].ino == ino; });
}

std::optional<KnownInodes::File> KnownInodes::find(Ino ino) const {
  const std::uint32_t slot = slot_of(ino);
  if (slot == kNone) return std::nullopt;
  const Record& record = memory_->records[slot];
  return File{record.reading, record.number()};
}

std::uint32_t KnownInodes::slot_of(const File& file) const {
  return by_file_.find(hash_of(file), [&](std::uint32_t slot) {
    const Record& record = memory_->records[slot];
    return record.number() == file.number && record.reading == file.reading;
  });
}

std::optional<Ino> KnownInodes::find(const File& file) const {
  const std::uint32_t slot = slot_of(file);
  return slot == kNone ? std::nullopt : std::optional(memory_->records[slot].ino.load());
}

Ino KnownInodes::refer(const File& file) {
  const std::uint32_t known = slot_of(file);
  if (known != kNone) {
    Record& record = memory_->records[known];
    if (record.references != UINT32_MAX) ++record.references;
    return record.ino;
  }
  if (free_.empty() && memory_->used == kMax)
    throw Error(ErrorCode::no_memory, "the kernel knows too many names of the mount");
  make_room();
  counts_.try_emplace(file.reading);
  const std::uint32_t slot = free_.empty() ? memory_->used.load() : free_.back();
  Record& record = memory_->records[slot];
  record.low = static_cast<std::uint64_t>(file.number);
  record.high = static_cast<std::uint64_t>(file.number >> 64);
  record.reading = file.reading;
  record.references = 1;
  // First: even if this number stays unused, no other daemon will use it.
  const Ino ino = memory_->last = std::max<Ino>(memory_->last, kMaxCommonIno) + 1;
  record.ino = ino;
  if (free_.empty())
    memory_->used = slot + 1;
  else
    free_.pop_back();
  add(slot);
  return ino;
}

std::optional<std::uint32_t> KnownInodes::forget(Ino ino, std::uint64_t references) {
  const std::uint32_t slot = slot_of(ino);
  if (slot == kNone) return std::nullopt;
  Record& record = memory_->records[slot];
  if (record.references == UINT32_MAX) return std::nullopt;
  if (record.references > references) {
    record.references -= static_cast<std::uint32_t>(references);
    return std::nullopt;
  }
  const std::uint32_t reading = record.reading;
  remove(slot);
  return count(reading) == 0 ? std::optional(reading) : std::nullopt;
}

void KnownInodes::remove(std::uint32_t slot) {
  Record& record = memory_->records[slot];
  by_ino_.remove(hash_by_ino(slot), slot, [this](std::uint32_t s) { return hash_by_ino(s); });
  by_file_.remove(hash_by_file(slot), slot, [this](std::uint32_t s) { return hash_by_file(s); });
  record.ino = 0;
  free_.push_back(slot);
  --size_;
  if (const auto count = counts_.find(record.reading); --count->second == 0) counts_.erase(count);
}

bool KnownInodes::has_given() const { return memory_->last != 0; }

std::size_t KnownInodes::count(std::uint32_t reading) const {
  const auto it = counts_.find(reading);
  return it == counts_.end() ? 0 : it->second;
}

void KnownInodes::keep_only(std::uint32_t reading) {
  for (std::uint32_t slot = 0; slot < memory_->used; ++slot)
    if (const Record& record = memory_->records[slot]; record.ino != 0 && record.reading != reading)
      remove(slot);
}

std::uint32_t KnownInodes::visit(std::uint32_t from, const Visit& visit) const {
  const std::uint32_t used = memory_->used;
  for (std::uint32_t slot = from; slot < used; ++slot) {
    const Record& record = memory_->records[slot];
    const Ino ino = record.ino;
    if (ino != 0 && !visit(ino, {record.reading, record.number()})) return slot + 1;
  }
  return 0;
}

}  // namespace batchfs
