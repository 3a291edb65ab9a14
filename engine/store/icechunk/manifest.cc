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

std::optional<ChunkPlace> Manifest::find(const NodeId& id,
                                         std::span<const std::uint32_t> chunk) const {
  const auto it =
      std::lower_bound(arrays_.begin(), arrays_.end(), id,
                       [](const Array& array, const NodeId& wanted) { return array.id < wanted; });
  if (it == arrays_.end() || it->id != id || it->records.empty()) return std::nullopt;
  const Array& array = *it;
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
  if (!index) return std::nullopt;
  return place_of(array.records[*index]);
}

VirtualFile Manifest::file(std::uint32_t number) const {
  const Stored& stored = files_[number];
  const std::string_view texts = texts_;
  return {texts.substr(stored.location, stored.location_size),
          texts.substr(stored.etag, stored.etag_size), stored.modified};
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
