#include "engine/store/references/reference_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/dims.h"
#include "engine/base/strings.h"

namespace batchfs::references {

namespace {

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
  if (record.file == kMalformed)
    throw Error(ErrorCode::corrupt,
                fmt::format("the reference of this key is malformed: {}; make the references again",
                            reasons_[record.offset]));
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
  const bool is_chunk = parse_chunk_key(key, chunk);
  const auto target = is_chunk ? find_chunk(chunk) : std::nullopt;
  if (target) return target;
  if (const auto it = others_.find(key); it != others_.end()) return target_of(it->second);
  if (!is_chunk) return std::nullopt;
  if (const auto it = damaged_.find(chunk.path); it != damaged_.end())
    throw Error(ErrorCode::corrupt,
                fmt::format("no reference has this key, and that of '{}' may be meant, which no "
                            "reader asks for; make the references again",
                            it->second));
  return std::nullopt;
}

bool ReferenceTable::has(std::string_view key) const {
  try {
    return find(key).has_value();
  } catch (const Error&) {
    return true;
  }
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
    bytes += kNodeMemory + name.path.size() + 4 * chunks.near.capacity() +
             8 * chunks.far.capacity() + sizeof(Record) * chunks.records.capacity();
  for (const auto& [key, record] : others_) bytes += kNodeMemory + key.size();
  for (const auto& [path, key] : damaged_) bytes += kNodeMemory + path.size() + key.size();
  for (const auto& [key, why] : problems_) bytes += kNodeMemory + key.size() + why.size();
  for (const std::string& why : reasons_) bytes += sizeof why + why.size();
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

}  // namespace batchfs::references
