// How a reference table is built.

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "engine/base/printable.h"
#include "engine/base/utf8.h"
#include "engine/store/meant_document.h"
#include "engine/store/references/reference_table.h"

namespace batchfs::references {

namespace {

constexpr std::size_t kShownKey = 200, kMaxReason = 600;

std::string shown_key(std::string_view key) {
  return printable(key.substr(0, kShownKey)) + (key.size() > kShownKey ? "..." : "");
}

constexpr const char* kTwice = "the key is given twice";
constexpr const char* kOtherReason = "its value is not a reference";

std::string chunk_key(const std::string& path, bool by_slash,
                      std::span<const std::uint32_t> index) {
  const std::string numbers = fmt::format("{}", fmt::join(index, by_slash ? "/" : "."));
  return path.empty() ? numbers : path + "/" + numbers;
}

/// Without the numbers of a chunk.
std::string array_path(const std::string& path) {
  ChunkKey chunk;
  const std::string inside = path + "/0";
  return parse_chunk_key(inside, chunk) ? std::string(chunk.path) : path;
}

}  // namespace

ReferenceTable::Builder::Builder(std::uint64_t memory)
    : claims_(memory),
      table_(std::make_shared<ReferenceTable>()),
      last_(growing_.end()),
      // A random seed: a hostile set cannot choose file names that collide in the hash table.
      seed_(std::random_device()() * std::uint64_t{0x9e3779b97f4a7c15}) {}
ReferenceTable::Builder::~Builder() = default;

void ReferenceTable::Builder::reserve_numbered(std::uint64_t chunks) {
  claims_.take(2 * kNodeMemory + 8 + chunks * kNumberedBytes);
  last_ = growing_.emplace(ChunksName{"", false, 1}, Growing()).first;
  Growing& growing = last_->second;
  growing.indices.reserve(chunks);
  growing.records.reserve(chunks);
  growing.reserved = chunks;
}

void ReferenceTable::Builder::add_within(std::string_view key, std::span<const std::byte> bytes) {
  if (bytes.size() >= UINT32_MAX)
    throw Error(ErrorCode::not_supported, "4 GB of bytes in the set itself");
  claims_.take(2 * bytes.size());
  std::vector<std::byte>& within = table_->within_;
  const std::uint64_t offset = within.size();
  within.insert(within.end(), bytes.begin(), bytes.end());
  add(key, {kWithin, static_cast<std::uint32_t>(bytes.size()), offset});
}

void ReferenceTable::Builder::add_range(std::string_view key, std::string_view file,
                                        std::uint64_t offset, std::uint64_t length) {
  std::uint64_t end = 0;
  if (offset == 0 && length == 0) return;  // how TIFF files mark tiles that they do not hold
  if (length == 0) throw Error(ErrorCode::invalid_argument, "a range without bytes");
  if (__builtin_add_overflow(offset, length, &end) || end > INT64_MAX)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} bytes from byte {} on, past the end of any file", length, offset));
  const std::uint32_t number = number_of_file(file);
  if (length < kWide) return add(key, {number, static_cast<std::uint32_t>(length), offset});
  claims_.take(2 * sizeof(Wide));
  table_->wide_.push_back({offset, length});
  add(key, {number, kWide, table_->wide_.size() - 1});
}

void ReferenceTable::Builder::add_whole(std::string_view key, std::string_view file) {
  add(key, {number_of_file(file), kWhole, 0});
}

void ReferenceTable::Builder::add_malformed(std::string_view key, const std::string& why) {
  add(key, malformed(key, why));
}

/// Adds a problem, too.
ReferenceTable::Record ReferenceTable::Builder::malformed(std::string_view key,
                                                          const std::string& why) {
  const std::string shown = why.substr(0, kMaxReason);
  add_problem(key, shown);
  return malformed(shown);
}

ReferenceTable::Record ReferenceTable::Builder::malformed(const std::string& shown) {
  auto it = reasons_.find(shown);
  if (it == reasons_.end()) {
    std::vector<std::string>& reasons = table_->reasons_;
    const std::string kept = reasons.size() < kMaxReasons ? shown : kOtherReason;
    claims_.take(2 * kNodeMemory + 2 * kept.size());
    it = reasons_.emplace(kept, reasons.size()).first;
    if (it->second == reasons.size()) reasons.push_back(kept);
  }
  return {kMalformed, 0, it->second};
}

void ReferenceTable::Builder::add_problem(std::string_view key, const std::string& why) {
  ReferenceTable::Problems& problems = table_->problems_;
  if (problems.size() == kMaxProblems) return;
  claims_.take(2 * kNodeMemory + kShownKey + why.size());
  problems.emplace_back(shown_key(key), why);
}

void ReferenceTable::Builder::add(std::string_view key, Record record) {
  if (!is_key(key) || !is_utf8(key)) return add_unread(key);
  ++table_->references_;
  if (!parse_chunk_key(key, key_)) return add_other(key, record);
  const std::size_t rank = key_.index.size();
  const ChunksView view{key_.path, key_.by_slash, rank};
  const Before before;
  if (last_ == growing_.end() || before(last_->first, view) || before(view, last_->first)) {
    last_ = growing_.find(view);
    if (last_ == growing_.end()) {
      claims_.take(2 * kNodeMemory + 2 * key_.path.size() + 8 * rank);
      last_ = growing_.emplace(ChunksName{std::string(key_.path), key_.by_slash, rank}, Growing())
                  .first;
    }
  }
  Growing& growing = last_->second;
  // Vectors double as they grow.
  if (growing.records.size() >= growing.reserved) claims_.take(2 * (sizeof(Record) + 4 * rank) + 8);
  growing.indices.insert(growing.indices.end(), key_.index.begin(), key_.index.end());
  growing.records.push_back(record);
}

void ReferenceTable::Builder::add_other(std::string_view key, Record record) {
  const auto it = table_->others_.find(key);
  if (it != table_->others_.end()) {
    it->second = malformed(key, kTwice);
    return;
  }
  claims_.take(kNodeMemory + key.size());
  table_->others_.emplace(key, record);
}

/// The reference is lost, so the document that it may mean is malformed, or the array of the chunk
/// is damaged.
void ReferenceTable::Builder::add_unread(std::string_view key) {
  if (auto document = is_utf8(key) ? meant_document(key) : std::nullopt) {
    add_problem(
        key, fmt::format("no reader asks for this key: '{}' may be meant", shown_key(*document)));
    claims_.take(kNodeMemory + document->size() + kShownKey);
    unread_documents_.emplace(std::move(*document), shown_key(key));
    return;
  }
  add_problem(key, "no reader asks for this key: the chunk that it may mean is missing");
  std::string path;  // the components that a reader may ask for
  bool is_lost = false;
  for (std::size_t begin = 0; begin <= key.size() && !is_lost;) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view component = key.substr(begin, end - begin);
    begin = end + 1;
    if (component.empty() || component == ".") continue;
    if (component == "..") {
      add_damaged(array_path(path), key);
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    } else if (is_key(component) && is_utf8(component)) {
      path.append(path.empty() ? "" : "/").append(component);
    } else {
      is_lost = true;
    }
  }
  if (is_lost) return add_damaged(array_path(path), key);
  if (parse_chunk_key(path, key_)) return add_damaged(std::string(key_.path), key);
  // "crs/", VirtualiZarr's name of a scalar's chunk, does not harm others: it stays missing.
  if (key.ends_with('/')) return;
  const std::size_t slash = path.rfind('/');
  add_damaged(array_path(path.substr(0, slash == std::string::npos ? 0 : slash)), key);
}

void ReferenceTable::Builder::add_damaged(const std::string& path, std::string_view key) {
  if (table_->damaged_.contains(path)) return;
  claims_.take(kNodeMemory + path.size() + kShownKey);
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
  if (table.files() >= kMalformed)
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
  for (const auto& [document, key] : unread_documents_) {
    if (table_->others_.contains(document)) continue;
    claims_.take(kNodeMemory + document.size());
    table_->others_.emplace(
        document, malformed(fmt::format("it is written '{}', which no reader asks for", key)));
  }
  table_->within_.shrink_to_fit();
  table_->file_names_.shrink_to_fit();
  return std::move(table_);
}

/// Chunks with the largest numbers become other keys, until 63 bits count the chunks of the box.
void ReferenceTable::Builder::set_far_chunks_aside(const ChunksName& name, Growing& growing) {
  const std::size_t count = growing.records.size(), rank = name.rank;
  const auto index = [&](std::size_t i) {
    return std::span(growing.indices).subspan(i * rank, rank);
  };
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order(count);  // largest number, which
  claims_.take(count * (sizeof order[0] + sizeof(Record) + 4 * rank));
  for (std::size_t i = 0; i < count; ++i)
    order[i] = {*std::max_element(index(i).begin(), index(i).end()), static_cast<std::uint32_t>(i)};
  std::sort(order.begin(), order.end());
  std::vector<std::uint32_t> lengths(rank, 0);
  const auto fits = [&](std::span<const std::uint32_t> numbers) {
    std::uint64_t volume = 1;
    for (std::size_t d = 0; d < rank; ++d) {
      lengths[d] = std::max(lengths[d], numbers[d]);
      if (lengths[d] == UINT32_MAX ||
          __builtin_mul_overflow(volume, std::uint64_t{lengths[d]} + 1, &volume))
        return false;
    }
    return volume <= INT64_MAX;
  };
  Growing near;
  std::size_t taken = 0;
  for (; taken < count && fits(index(order[taken].second)); ++taken) {
    const auto numbers = index(order[taken].second);
    near.indices.insert(near.indices.end(), numbers.begin(), numbers.end());
    near.records.push_back(growing.records[order[taken].second]);
  }
  for (; taken < count; ++taken) {
    const std::size_t i = order[taken].second;
    add_other(chunk_key(name.path, name.by_slash, index(i)), growing.records[i]);
  }
  growing = std::move(near);
}

/// Positions in the box of all, ascending.
void ReferenceTable::Builder::close(const ChunksName& name, Growing& growing) {
  const std::size_t count = growing.records.size(), rank = name.rank;
  if (count == 0) return;
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
        volume > INT64_MAX) {
      set_far_chunks_aside(name, growing);
      return close(name, growing);
    }
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
  if (volume > UINT32_MAX)
    chunks.far = std::move(positions);
  else
    chunks.near.assign(positions.begin(), positions.end());
  if (chunks.far.empty())
    join_twins(name, chunks, chunks.near);
  else
    join_twins(name, chunks, chunks.far);
  table_->chunks_.emplace(name, std::move(chunks));
}

/// Chunks that were added several times become one malformed reference.
template <class Positions>
void ReferenceTable::Builder::join_twins(const ChunksName& name, Chunks& chunks,
                                         Positions& positions) {
  const auto first = std::adjacent_find(positions.begin(), positions.end());
  if (first == positions.end()) return;
  std::size_t kept = static_cast<std::size_t>(first - positions.begin()) + 1;
  bool has_twin = false;
  for (std::size_t i = kept; i < positions.size(); ++i) {
    if (positions[i] != positions[kept - 1]) {
      has_twin = false;
      positions[kept] = positions[i];
      chunks.records[kept++] = chunks.records[i];
    } else if (!std::exchange(has_twin, true)) {
      const std::vector<std::uint32_t> index = chunks.index(kept - 1);
      chunks.records[kept - 1] = malformed(chunk_key(name.path, name.by_slash, index), kTwice);
    }
  }
  positions.resize(kept);
  chunks.records.resize(kept);
}

}  // namespace batchfs::references
