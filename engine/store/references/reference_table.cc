#include "engine/store/references/reference_table.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include <fmt/format.h>
#include <xxhash.h>

#include "engine/base/dims.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "engine/base/utf8.h"

namespace batchfs::references {

namespace {

/// Memory of a node of a map beside its text.
constexpr std::uint64_t kNode = 160;
constexpr std::size_t kShownKey = 200;

std::string shown_key(std::string_view key) {
  return printable(key.substr(0, kShownKey)) + (key.size() > kShownKey ? "..." : "");
}

std::optional<std::uint32_t> number_of(std::string_view digits) {
  const auto number = parse_exact_number(digits);
  if (!number || *number > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

/// Takes the last component off `path`.
std::string_view take_last(std::string_view& path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? path : path.substr(slash + 1);
  path = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
  return last;
}

}  // namespace

/// The children of a directory.
class Listing {
 public:
  explicit Listing(const std::string& where) : where_(where) {}
  void add(std::string_view name, bool is_prefix) {
    if (!entries_.empty() && entries_.back().name == name && entries_.back().is_prefix == is_prefix)
      return;
    entries_.push_back({std::string(name), is_prefix});
    memory_.add(entries_.back(), where_);
  }
  std::vector<Store::Entry> take() {
    std::sort(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
      return a.name != b.name ? a.name < b.name : a.is_prefix > b.is_prefix;
    });
    const auto same = [](const auto& a, const auto& b) { return a.name == b.name; };
    entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
    return std::move(entries_);
  }

 private:
  const std::string& where_;
  std::vector<Store::Entry> entries_;
  ListingMemory memory_;
};

bool parse_chunk_key(std::string_view key, ChunkKey& chunk) {
  chunk.index.clear();
  std::string_view path = key;
  const std::string_view last = take_last(path);
  if (last.empty() || last.front() < '0' || last.front() > '9') return false;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(last.find('.', begin), last.size());
    const auto number = number_of(last.substr(begin, end - begin));
    if (!number || chunk.index.size() == kMaxArrayDims) return false;
    chunk.index.push_back(*number);
    if (end == last.size()) break;
    begin = end + 1;
  }
  chunk.by_slash = false;
  chunk.path = path;
  if (chunk.index.size() > 1) return true;
  while (!path.empty()) {
    const auto number = number_of(take_last(path));
    if (!number) break;
    if (chunk.index.size() == kMaxArrayDims) return false;
    chunk.index.push_back(*number);
    chunk.path = path;
  }
  chunk.by_slash = chunk.index.size() > 1;
  std::reverse(chunk.index.begin(), chunk.index.end());
  return true;
}

// ---- the table ----

std::size_t ReferenceTable::Chunks::first_from(std::uint64_t wanted) const {
  if (near.empty())
    return static_cast<std::size_t>(std::lower_bound(far.begin(), far.end(), wanted) - far.begin());
  return static_cast<std::size_t>(std::lower_bound(near.begin(), near.end(), wanted) -
                                  near.begin());
}

std::vector<std::uint32_t> ReferenceTable::Chunks::index(std::size_t i) const {
  std::vector<std::uint32_t> found(size.size());
  std::uint64_t rest = position(i);
  for (std::size_t d = size.size(); d-- > 0; rest /= size[d])
    found[d] = from[d] + static_cast<std::uint32_t>(rest % size[d]);
  return found;
}

std::string_view ReferenceTable::file(std::size_t number) const {
  const std::uint64_t begin = number == 0 ? 0 : file_ends_[number - 1];
  return std::string_view(file_names_).substr(begin, file_ends_[number] - begin);
}

Target ReferenceTable::target_of(const Record& record) const {
  Target target;
  if (record.file == kWithin) {
    target.bytes = std::span(within_).subspan(record.offset, record.length);
    return target;
  }
  target.file = file(record.file);
  target.kind = record.length == kWhole ? Target::Kind::whole : Target::Kind::range;
  if (record.length == kWide) {
    target.offset = wide_[record.offset].offset;
    target.length = wide_[record.offset].length;
  } else if (record.length != kWhole) {
    target.offset = record.offset;
    target.length = record.length;
  }
  return target;
}

std::optional<Target> ReferenceTable::find(std::string_view key) const {
  ChunkKey chunk;
  if (!parse_chunk_key(key, chunk)) {
    const auto it = others_.find(key);
    return it == others_.end() ? std::nullopt : std::optional(target_of(it->second));
  }
  const auto target = find_chunk(chunk);
  if (const auto it = target ? damaged_.end() : damaged_.find(chunk.path); it != damaged_.end())
    throw Error(ErrorCode::corrupt,
                fmt::format("no reference has this key, and that of '{}' may be meant, which no "
                            "reader asks for; make the references again",
                            it->second));
  return target;
}

std::optional<Target> ReferenceTable::find_chunk(const ChunkKey& chunk) const {
  const auto it = chunks_.find(ChunksView{chunk.path, chunk.by_slash, chunk.index.size()});
  if (it == chunks_.end()) return std::nullopt;
  const Chunks& chunks = it->second;
  std::uint64_t position = 0;
  for (std::size_t d = 0; d < chunk.index.size(); ++d) {
    const std::uint32_t within = chunk.index[d] - chunks.from[d];
    if (chunk.index[d] < chunks.from[d] || within >= chunks.size[d]) return std::nullopt;
    position = position * chunks.size[d] + within;
  }
  const std::size_t i = chunks.first_from(position);
  if (i == chunks.records.size() || chunks.position(i) != position) return std::nullopt;
  return target_of(chunks.records[i]);
}

std::uint64_t ReferenceTable::memory() const {
  std::uint64_t bytes = within_.capacity() + file_names_.capacity() + 8 * file_ends_.capacity() +
                        sizeof(Wide) * wide_.capacity();
  for (const auto& [name, chunks] : chunks_)
    bytes += kNode + name.path.size() + 4 * chunks.near.capacity() + 8 * chunks.far.capacity() +
             sizeof(Record) * chunks.records.capacity();
  for (const auto& [key, record] : others_) bytes += kNode + key.size();
  return bytes;
}

/// Chunks of `path` whose first numbers are `begin`.
void ReferenceTable::list_chunks(std::string_view path, std::span<const std::uint32_t> begin,
                                 Listing& listing) const {
  for (auto it = chunks_.lower_bound(ChunksView{path, false, 0});
       it != chunks_.end() && it->first.path == path; ++it) {
    const auto& [name, chunks] = *it;
    if (name.rank <= begin.size() || (!begin.empty() && !name.by_slash)) continue;
    std::uint64_t first = 0, run = 1;
    bool is_inside = true;
    for (std::size_t d = 0; d < name.rank; ++d) {
      const std::uint32_t wanted = d < begin.size() ? begin[d] : chunks.from[d];
      is_inside = is_inside && wanted >= chunks.from[d] && wanted - chunks.from[d] < chunks.size[d];
      first = first * chunks.size[d] + (wanted - chunks.from[d]);
      if (d >= begin.size()) run *= chunks.size[d];
    }
    if (!is_inside) continue;
    for (std::size_t i = chunks.first_from(first);
         i < chunks.records.size() && chunks.position(i) - first < run; ++i) {
      const std::vector<std::uint32_t> index = chunks.index(i);
      if (name.by_slash)
        listing.add(std::to_string(index[begin.size()]), begin.size() + 1 < name.rank);
      else
        listing.add(fmt::format("{}", fmt::join(index, ".")), false);
    }
  }
}

std::vector<Store::Entry> ReferenceTable::list(std::string_view prefix,
                                               const std::string& where) const {
  Listing listing(where);
  const std::string begin = prefix.empty() ? std::string() : std::string(prefix) + "/";
  const auto starts = [&begin](std::string_view text) { return text.starts_with(begin); };
  // The first key after everything in the directory `name`: '0' follows '/'.
  const auto past = [&begin](std::string_view name) { return begin + std::string(name) + "0"; };
  for (auto it = others_.lower_bound(begin); it != others_.end() && starts(it->first);) {
    const std::string_view rest = std::string_view(it->first).substr(begin.size());
    const std::size_t slash = rest.find('/');
    listing.add(rest.substr(0, slash), slash != std::string_view::npos);
    it = slash == std::string_view::npos ? std::next(it)
                                         : others_.lower_bound(past(rest.substr(0, slash)));
  }
  for (auto it = chunks_.lower_bound(ChunksView{begin, false, 0});
       it != chunks_.end() && starts(it->first.path);) {
    const std::string_view rest = std::string_view(it->first.path).substr(begin.size());
    const std::size_t slash = rest.find('/');
    if (!rest.empty()) listing.add(rest.substr(0, slash), true);
    it = slash == std::string_view::npos
             ? std::next(it)
             : chunks_.lower_bound(ChunksView{past(rest.substr(0, slash)), false, 0});
  }
  list_chunks(prefix, {}, listing);
  std::vector<std::uint32_t> index;
  for (std::string_view path = prefix; !path.empty() && index.size() < kMaxArrayDims;) {
    const auto number = number_of(take_last(path));
    if (!number) break;
    index.insert(index.begin(), *number);
    list_chunks(path, index, listing);
  }
  return listing.take();
}

// ---- building it ----

ReferenceTable::Builder::Builder(std::uint64_t memory)
    : claims_(memory),
      table_(std::make_shared<ReferenceTable>()),
      last_(growing_.end()),
      // A random seed: a hostile set cannot choose file names that collide in the hash table.
      seed_(std::random_device()() * std::uint64_t{0x9e3779b97f4a7c15}) {}
ReferenceTable::Builder::~Builder() = default;

void ReferenceTable::Builder::add_within(std::string_view key, std::span<const std::byte> bytes) {
  if (bytes.size() >= UINT32_MAX)
    throw Error(ErrorCode::not_supported,
                fmt::format("'{}' holds 4 GB of bytes itself", shown_key(key)));
  claims_.take(2 * bytes.size());
  std::vector<std::byte>& within = table_->within_;
  const std::uint64_t offset = within.size();
  within.insert(within.end(), bytes.begin(), bytes.end());
  add(key, {kWithin, static_cast<std::uint32_t>(bytes.size()), offset});
}

void ReferenceTable::Builder::add_range(std::string_view key, std::string_view file,
                                        std::uint64_t offset, std::uint64_t length) {
  std::uint64_t end = 0;
  if (length == 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' refers to a range without bytes", shown_key(key)));
  if (__builtin_add_overflow(offset, length, &end) || end > INT64_MAX)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' refers to bytes past the end of any file", shown_key(key)));
  const std::uint32_t number = number_of_file(file);
  if (length < kWide) return add(key, {number, static_cast<std::uint32_t>(length), offset});
  claims_.take(2 * sizeof(Wide));
  table_->wide_.push_back({offset, length});
  add(key, {number, kWide, table_->wide_.size() - 1});
}

void ReferenceTable::Builder::add_whole(std::string_view key, std::string_view file) {
  add(key, {number_of_file(file), kWhole, 0});
}

void ReferenceTable::Builder::add(std::string_view key, Record record) {
  if (!is_key(key) || !is_utf8(key)) return add_unread(key);
  ++table_->references_;
  if (!parse_chunk_key(key, key_)) {
    claims_.take(kNode + key.size());
    if (!table_->others_.emplace(key, record).second)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the key '{}' is given twice", shown_key(key)));
    return;
  }
  const std::size_t rank = key_.index.size();
  const ChunksView view{key_.path, key_.by_slash, rank};
  const Before before;
  if (last_ == growing_.end() || before(last_->first, view) || before(view, last_->first)) {
    last_ = growing_.find(view);
    if (last_ == growing_.end()) {
      claims_.take(2 * kNode + 2 * key_.path.size() + 8 * rank);
      last_ = growing_.emplace(ChunksName{std::string(key_.path), key_.by_slash, rank}, Growing())
                  .first;
    }
  }
  // Vectors double as they grow.
  claims_.take(2 * (sizeof(Record) + 4 * rank) + 8);
  Growing& growing = last_->second;
  growing.indices.insert(growing.indices.end(), key_.index.begin(), key_.index.end());
  growing.records.push_back(record);
}

void ReferenceTable::Builder::add_unread(std::string_view key) {
  if (table_->unread_keys_.size() == kMaxUnreadKeys) return;
  claims_.take(2 * kNode + 2 * kShownKey);
  table_->unread_keys_.push_back(shown_key(key));
  // "crs/", VirtualiZarr's name of a scalar's chunk, does no harm to others: it stays missing.
  std::string_view path = key;
  if (path.ends_with('/')) path.remove_suffix(1);
  if ((is_key(path) && is_utf8(path)) || path.size() > kShownKey) return;
  while (!path.empty() && !(is_key(path) && is_utf8(path))) take_last(path);
  table_->damaged_.emplace(path, shown_key(key));
}

std::uint32_t ReferenceTable::Builder::number_of_file(std::string_view file) {
  ReferenceTable& table = *table_;
  if (!table.file_ends_.empty() && table.file(table.files() - 1) == file)
    return static_cast<std::uint32_t>(table.files() - 1);
  if (2 * table.files() >= slots_.size()) grow_slots();
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = XXH3_64bits_withSeed(file.data(), file.size(), seed_) & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask)
    if (table.file(slots_[slot] - 1) == file) return slots_[slot] - 1;
  if (table.files() >= kWithin - 1)
    throw Error(ErrorCode::not_supported, "the set refers to more than 4 billion files");
  claims_.take(2 * (file.size() + sizeof(std::uint64_t)));
  table.file_names_ += file;
  table.file_ends_.push_back(table.file_names_.size());
  slots_[slot] = static_cast<std::uint32_t>(table.files());
  return slots_[slot] - 1;
}

void ReferenceTable::Builder::grow_slots() {
  const std::size_t size = std::max<std::size_t>(64, 2 * slots_.size());
  claims_.take(4 * (size - slots_.size()));
  slots_.assign(size, 0);
  for (std::uint32_t number = 0; number < table_->files(); ++number) {
    const std::string_view name = table_->file(number);
    std::size_t slot = XXH3_64bits_withSeed(name.data(), name.size(), seed_) & (size - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (size - 1);
    slots_[slot] = number + 1;
  }
}

std::shared_ptr<const ReferenceTable> ReferenceTable::Builder::finish() {
  slots_ = {};
  while (!growing_.empty()) {
    auto node = growing_.extract(growing_.begin());
    close(node.key(), node.mapped());
  }
  last_ = growing_.end();
  table_->within_.shrink_to_fit();
  table_->file_names_.shrink_to_fit();
  return std::move(table_);
}

/// Positions in the box of all, ascending.
void ReferenceTable::Builder::close(const ChunksName& name, Growing& growing) {
  const std::size_t count = growing.records.size(), rank = name.rank;
  Chunks chunks;
  chunks.from.assign(rank, UINT32_MAX);
  chunks.size.assign(rank, 0);
  for (std::size_t i = 0; i < growing.indices.size(); ++i) {
    chunks.from[i % rank] = std::min(chunks.from[i % rank], growing.indices[i]);
    chunks.size[i % rank] = std::max(chunks.size[i % rank], growing.indices[i]);
  }
  std::uint64_t volume = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::uint64_t length = std::uint64_t{chunks.size[d]} - chunks.from[d] + 1;
    if (length > UINT32_MAX || __builtin_mul_overflow(volume, length, &volume) ||
        volume > INT64_MAX)
      throw Error(
          ErrorCode::not_supported,
          fmt::format("the chunks of '{}' have numbers too far apart", shown_key(name.path)));
    chunks.size[d] = static_cast<std::uint32_t>(length);
  }
  std::vector<std::uint64_t> positions(count);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t d = 0; d < rank; ++d)
      positions[i] =
          positions[i] * chunks.size[d] + (growing.indices[i * rank + d] - chunks.from[d]);
  growing.indices = {};
  if (!std::is_sorted(positions.begin(), positions.end())) {
    claims_.take(count * (4 + sizeof(std::uint64_t) + sizeof(Record)));
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return positions[a] < positions[b]; });
    std::vector<std::uint64_t> sorted(count);
    chunks.records.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      sorted[i] = positions[order[i]];
      chunks.records[i] = growing.records[order[i]];
    }
    positions = std::move(sorted);
    growing.records = {};
  } else {
    chunks.records = std::move(growing.records);
    chunks.records.shrink_to_fit();
  }
  if (std::adjacent_find(positions.begin(), positions.end()) != positions.end())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a chunk of '{}' is given twice", shown_key(name.path)));
  if (volume > UINT32_MAX)
    chunks.far = std::move(positions);
  else
    chunks.near.assign(positions.begin(), positions.end());
  table_->chunks_.emplace(name, std::move(chunks));
}

}  // namespace batchfs::references
