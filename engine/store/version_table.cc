#include "engine/store/version_table.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>

#include <sys/mman.h>
#include <xxhash.h>

#include "engine/base/error.h"

namespace batchfs {

namespace {

// Segments that double in size, so that a small store touches little memory. An entry lies in the
// first segment that had a free slot among the kProbes from its hash on when it was added. Entries
// are never removed, so a free slot met on the way ends a search.
constexpr std::size_t kSegments = 11;
constexpr std::size_t kFirstSegment = 4096;  // entries
constexpr std::size_t kProbes = 16;
constexpr std::size_t entries_of(std::size_t segments) {
  return kFirstSegment * ((std::size_t{1} << segments) - 1);
}

void* map(std::size_t bytes, int flags, int fd, std::uint64_t offset) {
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED)
    throw Error(ErrorCode::no_memory,
                std::string("memory for the versions of objects: ") + std::strerror(errno));
  return memory;
}

}  // namespace

struct VersionTable::Memory {
  // Nobody who names a store's objects can choose names whose hashes are the same.
  std::atomic<std::uint64_t> seed;
  std::atomic<std::uint64_t> size;
  std::byte padding[4096 - 2 * sizeof(std::uint64_t)];  // entries begin with a page
  Entry entries[entries_of(kSegments)];

  /// Calls `visit(entry)` for the slots of a hash in the first segments, in order, until it returns
  /// true.
  template <class Visit>
  void for_slots(std::uint64_t hash, std::size_t segments, Visit&& visit) {
    Entry* segment = entries;
    for (std::size_t length = kFirstSegment, i = 0; i < segments;
         segment += length, length *= 2, ++i)
      for (std::size_t probe = 0; probe < kProbes; ++probe)
        if (visit(segment[(hash + probe) & (length - 1)])) return;
  }
};

const std::size_t VersionTable::kBytes = sizeof(Memory);

VersionTable::VersionTable()
    : memory_(
          static_cast<Memory*>(map(kBytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
      segments_(kSegments) {
  start();
}

VersionTable::VersionTable(int fd, std::uint64_t offset)
    : memory_(static_cast<Memory*>(map(kBytes, MAP_SHARED | MAP_NORESERVE, fd, offset))),
      segments_(kSegments) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  start();
}

VersionTable::~VersionTable() { ::munmap(memory_, kBytes); }

void VersionTable::start() {
  std::random_device random;
  std::uint64_t none = 0;
  memory_->seed.compare_exchange_strong(none, (std::uint64_t{random()} << 32) | random() | 1);
}

void VersionTable::limit(std::uint64_t bytes) {
  std::size_t segments = 1;
  while (segments < kSegments && entries_of(segments + 1) * sizeof(Entry) <= bytes) ++segments;
  segments_ = segments;
}

std::uint64_t VersionTable::hash(std::string_view key, std::uint64_t space) const {
  return std::max<std::uint64_t>(
      1, XXH3_64bits_withSeed(key.data(), key.size(), memory_->seed + space));
}

std::optional<std::uint64_t> VersionTable::find(std::string_view key, std::uint64_t space) const {
  const std::uint64_t wanted = hash(key, space);
  std::optional<std::uint64_t> found;
  memory_->for_slots(wanted, kSegments, [&](const Entry& entry) {
    const std::uint64_t here = entry.key;
    if (here == wanted) found = entry.version;
    return here == wanted || here == 0;
  });
  return found;
}

VersionTable::Accepted VersionTable::accept(std::string_view key, std::uint64_t version,
                                            std::uint64_t space) {
  const std::uint64_t wanted = hash(key, space);
  Entry* found = nullptr;
  memory_->for_slots(wanted, segments_, [&](Entry& entry) {
    std::uint64_t here = entry.key;
    if (here == 0 && entry.key.compare_exchange_strong(here, wanted)) {
      ++memory_->size;
      here = wanted;
    }
    // Where another thread took the slot meanwhile, `here` is its key, which may be the same.
    if (here == wanted) found = &entry;
    return found != nullptr;
  });
  if (found == nullptr) return Accepted::no_room;
  std::uint64_t known = kUnknown;
  if (version == kUnknown || found->version.compare_exchange_strong(known, version) ||
      known == version)
    return Accepted::yes;
  return Accepted::other_version;
}

std::uint64_t VersionTable::size() const { return memory_->size; }

}  // namespace batchfs
