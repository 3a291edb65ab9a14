#include "engine/store/icechunk/manifest.h"

#include <algorithm>
#include <cstring>

#include "engine/store/icechunk/flat_table.h"

namespace batchfs::icechunk {

namespace {

template <class Number>
Number number_in(const std::array<std::byte, 16>& body, std::size_t at) {
  Number value;
  std::memcpy(&value, body.data() + at, sizeof value);
  return value;
}

}  // namespace

const Manifest::Array* Manifest::array_of(const NodeId& id) const {
  const auto it =
      std::lower_bound(arrays_.begin(), arrays_.end(), id,
                       [](const Array& array, const NodeId& wanted) { return array.id < wanted; });
  return it == arrays_.end() || it->id != id || it->records.empty() ? nullptr : &*it;
}

std::optional<ChunkPlace> Manifest::find(const NodeId& id,
                                         std::span<const std::uint32_t> chunk) const {
  const Array* const found_array = array_of(id);
  if (found_array == nullptr) return std::nullopt;
  const Array& array = *found_array;
  constexpr std::uint32_t kOldScalar[] = {0};
  if (chunk.empty() && array.from.size() == 1) chunk = kOldScalar;
  if (chunk.size() != array.from.size())
    throw Error(ErrorCode::corrupt, "the manifest gives the array another number of dimensions");
  std::uint64_t position = 0;
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    if (chunk[d] < array.from[d] || chunk[d] - array.from[d] >= array.size[d]) return std::nullopt;
    position = position * array.size[d] + (chunk[d] - array.from[d]);
  }
  const auto search = [&](const auto& positions) -> std::optional<std::size_t> {
    const auto found = std::lower_bound(positions.begin(), positions.end(), position);
    if (found == positions.end() || *found != position) return std::nullopt;
    return static_cast<std::size_t>(found - positions.begin());
  };
  std::optional<std::size_t> index = position;
  if (!array.near.empty())
    index = search(array.near);
  else if (!array.far.empty())
    index = search(array.far);
  if (!index || is_unstored(array.records[*index])) return std::nullopt;
  return place_of(array.records[*index]);
}

void Manifest::list(
    const NodeId& id, std::size_t rank, std::span<const std::uint32_t> begin,
    const std::function<void(const std::vector<std::uint32_t>& chunk)>& take) const {
  const Array* const array = array_of(id);
  if (array == nullptr) return;
  const std::size_t own_rank = array->from.size();
  if (own_rank != rank && !(rank == 0 && own_rank == 1))
    throw Error(ErrorCode::corrupt, "the manifest gives the array another number of dimensions");
  if (rank == 0) {
    if (!array->records.empty() && !is_unstored(array->records.front())) take({});
    return;
  }
  std::uint64_t first = 0, run = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::uint32_t index = d < begin.size() ? begin[d] : array->from[d];
    if (index < array->from[d] || index - array->from[d] >= array->size[d]) return;
    first = first * array->size[d] + (index - array->from[d]);
    if (d >= begin.size()) run *= array->size[d];
  }
  const auto walk = [&](const auto& position_of, std::size_t i) {
    std::vector<std::uint32_t> chunk(rank);
    for (; i < array->records.size() && position_of(i) - first < run; ++i) {
      if (is_unstored(array->records[i])) continue;
      std::uint64_t rest = position_of(i);
      for (std::size_t d = rank; d-- > 0; rest /= array->size[d])
        chunk[d] = array->from[d] + static_cast<std::uint32_t>(rest % array->size[d]);
      take(chunk);
    }
  };
  const auto walk_among = [&](const auto& positions) {
    const auto at = std::lower_bound(positions.begin(), positions.end(), first);
    walk([&](std::size_t i) -> std::uint64_t { return positions[i]; },
         static_cast<std::size_t>(at - positions.begin()));
  };
  if (!array->near.empty())
    walk_among(array->near);
  else if (!array->far.empty())
    walk_among(array->far);
  else
    walk([](std::size_t i) -> std::uint64_t { return i; }, first);
}

VirtualFile Manifest::file(std::uint32_t number) const {
  const Stored& stored = files_[number];
  const std::string_view texts = texts_;
  return {texts.substr(stored.location, stored.location_size),
          texts.substr(stored.etag, stored.etag_size), stored.modified};
}

bool Manifest::is_unstored(const Record& record) {
  constexpr std::uint32_t kEmptyInFile = static_cast<std::uint32_t>(Tag::in_file) << kLengthBits;
  return record.head == kEmptyInFile && number_in<std::uint64_t>(record.body, 8) == 0;
}

ChunkPlace Manifest::place_of(const Record& record) const {
  ChunkPlace place;
  place.length = record.head & ((1u << kLengthBits) - 1);
  switch (static_cast<Tag>(record.head >> kLengthBits)) {
    case Tag::native:
      place.kind = ChunkPlace::Kind::native;
      std::memcpy(place.object.data(), record.body.data(), place.object.size());
      place.offset = number_in<std::uint32_t>(record.body, place.object.size());
      break;
    case Tag::in_file:
      place.kind = ChunkPlace::Kind::in_file;
      place.file = file(number_in<std::uint32_t>(record.body, 0));
      place.offset = number_in<std::uint64_t>(record.body, 8);
      break;
    case Tag::within:
      place.kind = ChunkPlace::Kind::within;
      place.bytes = Bytes(within_).subspan(number_in<std::uint64_t>(record.body, 0), place.length);
      break;
    case Tag::wide: {
      const Wide& wide = wide_[number_in<std::uint32_t>(record.body, 0)];
      place.offset = wide.offset;
      place.length = wide.length;
      place.kind = wide.tag == Tag::native ? ChunkPlace::Kind::native : ChunkPlace::Kind::in_file;
      if (wide.tag == Tag::native)
        place.object = wide.object;
      else
        place.file = file(wide.file);
      break;
    }
  }
  return place;
}

}  // namespace batchfs::icechunk
