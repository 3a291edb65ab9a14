#include "engine/store/version_table.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/system_error.h"

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

Descriptor duplicate(int fd) {
  Descriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (copy.get() < 0) throw VersionTable::no_memory(errno);
  return copy;
}

void* map(std::size_t bytes, int flags, int fd, std::uint64_t offset) {
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) throw VersionTable::no_memory(errno);
  return memory;
}

/// A range of pages, whose memory is released where the file system can do so.
void zero(int fd, off_t begin, off_t bytes) {
  constexpr off_t kAtATime = VersionTable::kPage;
  static constexpr std::byte kZeros[kAtATime] = {};
  if (bytes == 0 || ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, bytes) == 0)
    return;
  if (errno != EOPNOTSUPP) throw VersionTable::no_memory(errno);
  for (off_t at = begin; at < begin + bytes; at += kAtATime)
    if (::pwrite(fd, kZeros, kAtATime, at) < 0) throw VersionTable::no_memory(errno);
}

}  // namespace

struct VersionTable::Memory {
  std::atomic<std::uint64_t> secret[2];  // zeros: nobody has used the table
  std::atomic<std::uint64_t> size;
  std::atomic<std::uint64_t> segments;                   // with room; others must not be touched
  std::byte padding[kPage - 4 * sizeof(std::uint64_t)];  // entries begin with a page
  Entry entries[entries_of(kSegments)];

  /// Calls `visit(entry)` for the slots of an identity in the first segments, in order, until it
  /// returns true, or `has_room(segment)` false.
  template <class HasRoom, class Visit>
  void for_slots(std::uint64_t first, std::size_t most, HasRoom&& has_room, Visit&& visit) {
    Entry* segment = entries;
    for (std::size_t length = kFirstSegment, i = 0; i < most && has_room(i);
         segment += length, length *= 2, ++i)
      for (std::size_t probe = 0; probe < kProbes; ++probe)
        if (visit(segment[(first + probe) & (length - 1)])) return;
  }
};

const std::size_t VersionTable::kBytes = sizeof(Memory);

VersionTable::VersionTable()
    : file_(-1),
      offset_(0),
      memory_(
          static_cast<Memory*>(map(kBytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
      segments_(kSegments) {
  memory_->segments = kSegments;
  start();
}

VersionTable::VersionTable(int fd, std::uint64_t offset)
    : file_(duplicate(fd)),
      offset_(offset),
      memory_(static_cast<Memory*>(map(kBytes, MAP_SHARED | MAP_NORESERVE, fd, offset))),
      segments_(kSegments) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  start();
}

Error VersionTable::no_memory(int cause) {
  return Error(ErrorCode::no_memory, describe_system_error(cause),
               "the memory for the versions of objects");
}

VersionTable::~VersionTable() { ::munmap(memory_, kBytes); }

void VersionTable::clear(int fd, std::uint64_t offset) {
  std::uint64_t header[4] = {};
  static_assert(offsetof(Memory, segments) == 3 * sizeof header[0]);
  if (::pread(fd, header, sizeof header, static_cast<off_t>(offset)) < 0)
    throw VersionTable::no_memory(errno);
  if (std::ranges::all_of(header, [](std::uint64_t word) { return word == 0; })) return;
  // The first page comes last: until then there is something to clear.
  const auto entries = static_cast<off_t>(offset + offsetof(Memory, entries));
  const std::uint64_t used =
      entries_of(std::min<std::uint64_t>(header[3], kSegments)) * sizeof(Entry);
  zero(fd, entries, static_cast<off_t>(used));
  zero(fd, static_cast<off_t>(offset), kPage);
}

void VersionTable::start() {
  std::random_device random;
  for (std::atomic<std::uint64_t>& word : memory_->secret) {
    std::uint64_t none = 0;  // else another daemon, perhaps one that was killed here, has set it
    word.compare_exchange_strong(none, (std::uint64_t{random()} << 32) | random() | 1);
  }
}

/// Without room on its file system, touching a page would end the process with SIGBUS.
bool VersionTable::make_room(std::size_t segment) {
  std::uint64_t with_room = memory_->segments;
  if (segment < with_room) return true;
  const std::uint64_t begin =
      offset_ + offsetof(Memory, entries) + entries_of(segment) * sizeof(Entry);
  const std::uint64_t bytes = (kFirstSegment << segment) * sizeof(Entry);
  if (::posix_fallocate(file_.get(), static_cast<off_t>(begin), static_cast<off_t>(bytes)) != 0)
    return false;
  while (with_room <= segment && !memory_->segments.compare_exchange_weak(with_room, segment + 1)) {
  }
  return true;
}

void VersionTable::limit(std::uint64_t bytes) {
  std::size_t segments = 1;
  while (segments < kSegments && entries_of(segments + 1) * sizeof(Entry) <= bytes) ++segments;
  segments_ = segments;
}

KeyedHash::Key VersionTable::secret() const { return {memory_->secret[0], memory_->secret[1]}; }

VersionTable::Identity VersionTable::identity(const KeyedHash::Key& secret, std::string_view space,
                                              std::string_view key) {
  KeyedHash hash(secret);
  hash.add(space.size());
  hash.add(space);
  hash.add(key);
  const KeyedHash::Value value = hash.value();
  return {std::max<std::uint64_t>(1, value[0]), std::max<std::uint64_t>(1, value[1])};
}

std::uint64_t VersionTable::digest(std::string_view text) const {
  KeyedHash hash(secret());
  hash.add(text);
  return std::max<std::uint64_t>(1, hash.value()[0]);
}

std::optional<std::uint64_t> VersionTable::find(std::string_view key,
                                                std::string_view space) const {
  const Identity wanted = identity(secret(), space, key);
  std::optional<std::uint64_t> found;
  const auto has_room = [this](std::size_t segment) { return segment < memory_->segments; };
  memory_->for_slots(wanted[0], kSegments, has_room, [&](const Entry& entry) {
    const std::uint64_t first = entry.first;
    const bool is_same = first == wanted[0] && entry.second == wanted[1];
    if (is_same) found = entry.version;
    return is_same || first == 0;
  });
  return found;
}

VersionTable::Accepted VersionTable::accept(std::string_view key, std::uint64_t version,
                                            std::string_view space) {
  const Identity wanted = identity(secret(), space, key);
  Entry* found = nullptr;
  const auto has_room = [this](std::size_t segment) { return make_room(segment); };
  memory_->for_slots(wanted[0], segments_, has_room, [&](Entry& entry) {
    std::uint64_t first = entry.first;
    if (first == 0 && entry.first.compare_exchange_strong(first, wanted[0])) {
      ++memory_->size;
      first = wanted[0];
    }
    // Where another thread took the slot meanwhile, `first` is its object's, which may be this one.
    // The other half may be missing: of an object that another thread, or a daemon that was killed,
    // was about to add. The object that sets it has the entry.
    if (first != wanted[0]) return false;
    std::uint64_t second = 0;
    if (entry.second.compare_exchange_strong(second, wanted[1]) || second == wanted[1])
      found = &entry;
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
