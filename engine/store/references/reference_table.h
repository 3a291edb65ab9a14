#pragma once
// The targets of the keys of a reference set.
//
// A chunk's key is a path that ends in numbers ("t2m/0.0.1", "t2m/c/0/0/1"). Chunks of one path are
// kept together, sorted: each takes its position in the box of all of them (4 bytes, 8 in a box of
// 2^32 chunks or more) and 16 bytes, so at most 24. Names of files are kept once each. Inline
// contents of the set lie in one run of bytes.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/store/store.h"
#include "engine/store/virtual/claims.h"

namespace batchfs::references {

/// The target of a key. Views the table that found it.
struct Target {
  enum class Kind : std::uint8_t { within, range, whole } kind = Kind::within;
  std::span<const std::byte> bytes;      // within the set
  std::string_view file;                 // as the set names it
  std::uint64_t offset = 0, length = 0;  // of a range
};

/// The path and the numbers that a key ends in.
struct ChunkKey {
  std::string_view path;
  bool by_slash = false;  // "t2m/0/1"; else "t2m/0.1", and of one number
  std::vector<std::uint32_t> index;
};
/// False for another key. Fills in `chunk`, whose memory is used again.
bool parse_chunk_key(std::string_view key, ChunkKey& chunk);

/// Immutable.
class ReferenceTable {
 public:
  class Builder;

  /// Throws corrupt for a key whose reference is malformed, and for a missing chunk of an array
  /// that has a key which readers never request.
  std::optional<Target> find(std::string_view key) const;
  /// Is there a reference, perhaps a malformed one?
  bool has(std::string_view key) const;
  /// Keys that readers never request, such as "a//0" and "a//.zattrs", and those with a malformed reference, with
  /// the reasons: at most kMaxProblems of them.
  using Problems = std::vector<std::pair<std::string, std::string>>;
  const Problems& problems() const { return problems_; }
  /// Like Store::list(). Throws no_memory; `where` is the place.
  std::vector<Store::Entry> list(std::string_view prefix, const std::string& where) const;

  std::uint64_t references() const { return references_; }
  /// Bytes that all this takes.
  std::uint64_t memory() const;
  std::size_t files() const { return file_ends_.size(); }
  std::string_view file(std::size_t number) const;

 private:
  /// `file` is kWithin: the bytes at `offset`; kMalformed: the reason at `offset`. Else `length` is
  /// kWhole, or kWide: that of wide_[offset].
  struct Record {
    std::uint32_t file, length;
    std::uint64_t offset;
  };
  static constexpr std::uint32_t kWithin = UINT32_MAX, kMalformed = UINT32_MAX - 1;
  static constexpr std::uint32_t kWhole = 0, kWide = UINT32_MAX;
  struct Wide {
    std::uint64_t offset, length;
  };
  static_assert(sizeof(Record) == 16);

  struct ChunksName {
    std::string path;
    bool by_slash;
    std::size_t rank;
  };
  struct ChunksView {
    std::string_view path;
    bool by_slash;
    std::size_t rank;
  };
  struct Before {
    using is_transparent = void;
    static ChunksView view(const ChunksName& n) { return {n.path, n.by_slash, n.rank}; }
    static ChunksView view(const ChunksView& n) { return n; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      const ChunksView x = view(a), y = view(b);
      if (const int order = x.path.compare(y.path); order != 0) return order < 0;
      return x.by_slash != y.by_slash ? y.by_slash : x.rank < y.rank;
    }
  };
  struct Chunks {
    std::vector<std::uint32_t> from, size;  // the box, by dimension
    std::vector<std::uint32_t> near;        // positions in the box, ascending
    std::vector<std::uint64_t> far;         // the same, of larger boxes
    std::vector<Record> records;

    std::uint64_t position(std::size_t i) const { return near.empty() ? far[i] : near[i]; }
    /// The first of those from `wanted` on.
    std::size_t first_from(std::uint64_t wanted) const;
    std::vector<std::uint32_t> index(std::size_t i) const;
  };

  Target target_of(const Record& record) const;
  std::optional<Target> find_chunk(const ChunkKey& chunk) const;
  void list_chunks(std::string_view path, std::span<const std::uint32_t> begin,
                   class Listing& listing) const;

  std::map<ChunksName, Chunks, Before> chunks_;
  std::map<std::string, Record, std::less<>> others_;
  std::vector<Wide> wide_;
  std::vector<std::byte> within_;
  std::string file_names_;
  std::vector<std::uint64_t> file_ends_;  // in file_names_
  std::uint64_t references_ = 0;
  /// Memory of a node of a map beside its text.
  static constexpr std::uint64_t kNodeMemory = 160;
  static constexpr std::size_t kMaxProblems = 1000, kMaxReasons = 1000;
  Problems problems_;
  /// A key that readers never request, by the path of the array that it may mean.
  std::map<std::string, std::string, std::less<>> damaged_;
  std::vector<std::string> reasons_;  // of malformed references
};

/// Not thread-safe.
class ReferenceTable::Builder {
 public:
  /// Every member throws no_memory when more than `memory` bytes are needed. Text that cannot be a
  /// key is a problem; so is a key that was added twice, which is then malformed.
  explicit Builder(std::uint64_t memory);
  ~Builder();

  /// Prepares for so many chunks whose keys are single numbers without a path, once and before any
  /// key: they take kNumberedBytes each, half of what a table takes that grows.
  void reserve_numbered(std::uint64_t chunks);
  /// A record; its number, and later its position in 8 bytes and in 4.
  static constexpr std::uint64_t kNumberedBytes = sizeof(Record) + 4 + 8;
  /// Throws not_supported for 4 GB of bytes.
  void add_within(std::string_view key, std::span<const std::byte> bytes);
  /// Throws invalid_argument for a range that no file can have.
  void add_range(std::string_view key, std::string_view file, std::uint64_t offset,
                 std::uint64_t length);
  void add_whole(std::string_view key, std::string_view file);
  /// A key whose reference cannot be read: an Error of its reader.
  void add_malformed(std::string_view key, const std::string& why);
  /// Once.
  std::shared_ptr<const ReferenceTable> finish();

 private:
  struct Growing {
    std::vector<std::uint32_t> indices;  // `rank` of each
    std::vector<Record> records;
    std::uint64_t reserved = 0;  // records that are claimed already
  };

  void add(std::string_view key, Record record);
  void add_other(std::string_view key, Record record);
  void add_unread(std::string_view key);
  void add_damaged(const std::string& path, std::string_view key);
  void add_problem(std::string_view key, const std::string& why);
  Record malformed(std::string_view key, const std::string& why);
  /// Without a problem. `shown`: at most kMaxReason bytes.
  Record malformed(const std::string& shown);
  std::uint32_t number_of_file(std::string_view file);
  void grow_slots();
  void set_far_chunks_aside(const ChunksName& name, Growing& growing);
  void close(const ChunksName& name, Growing& growing);
  template <class Positions>
  void join_twins(const ChunksName& name, Chunks& chunks, Positions& positions);

  Claims claims_;
  std::shared_ptr<ReferenceTable> table_;
  std::map<ChunksName, Growing, Before> growing_;
  std::map<ChunksName, Growing, Before>::iterator last_;  // that was added to
  ChunkKey key_;
  std::vector<std::uint32_t> slots_;  // of a hash table of files: their number + 1
  std::map<std::string, std::uint64_t, std::less<>> reasons_;  // numbers
  /// Documents that keys may mean which readers never request, with the first such key.
  std::map<std::string, std::string, std::less<>> unread_documents_;
  const std::uint64_t seed_;
};

}  // namespace batchfs::references
