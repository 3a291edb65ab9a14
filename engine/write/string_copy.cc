#include "engine/write/string_copy.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "engine/write/region_boxes.h"
#include "engine/zarr/chunk_grid.h"
#include "engine/zarr/node_path.h"

namespace batchfs {

namespace {

/// Items of one array: each is posted by itself.
constexpr std::int64_t kMaxItems = 4096;

void append_count(std::string& bytes, std::size_t count) {
  const auto number = static_cast<std::uint32_t>(count);
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace

std::string encode_strings(const std::vector<std::string>& strings) {
  std::string bytes;
  append_count(bytes, strings.size());
  for (const std::string& string : strings) {
    append_count(bytes, string.size());
    bytes += string;
  }
  return bytes;
}

StringCopy::StringCopy(const std::shared_ptr<Store>& store,
                       std::shared_ptr<const ArrayMetadata> source, const OutputArray& array,
                       OutputStore& output, std::uint64_t memory, int threads)
    : array_(array),
      output_(output),
      from_(source->shape, source->chunk_shape),
      to_(array.metadata->shape, array.chunks.chunk),
      // Beside the chunk as it is read, those encoded.
      share_(store, source, memory / 2 / static_cast<std::uint64_t>(threads)),
      alone_(store, source, memory / 2),
      presence_(store, std::move(source)) {}

std::size_t StringCopy::items() const {
  return static_cast<std::size_t>(std::min(from_.chunk_count(), kMaxItems));
}

void StringCopy::copy(std::size_t item) {
  const std::int64_t step = static_cast<std::int64_t>(items());
  for (auto number = static_cast<std::int64_t>(item); number < from_.chunk_count();
       number += step) {
    const Dims chunk = from_.chunk(number);
    try {
      const std::shared_lock lock(mutex_);
      copy_chunk(chunk, share_);
      continue;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::interrupted || share_.memory() == alone_.memory()) throw;
      // With less memory a large chunk looks damaged, too.
      if (error.code() != ErrorCode::no_memory && error.code() != ErrorCode::corrupt) throw;
    }
    const std::unique_lock lock(mutex_);
    copy_chunk(chunk, alone_);
  }
}

void StringCopy::copy_chunk(const Dims& chunk, const StringArray& strings) {
  const ArrayMetadata& metadata = *array_.metadata;
  const std::string fill =
      metadata.fill_value_json.is_string() ? metadata.fill_value_json.get<std::string>() : "";
  std::vector<std::string> all = strings.read_chunk(chunk, presence_);
  // Chunks have their full shape, also at the end of the array; one that is longer than the array
  // becomes as long.
  const Box box = to_.box(chunk);
  const Box from{box.start, from_.chunk_shape()}, to{box.start, to_.chunk_shape()};
  std::vector<std::string> copied(static_cast<std::size_t>(to.elements()), fill);
  for (std::int64_t i = 0; i < box.elements(); ++i) {
    const Dims at = position_in(box, i);
    copied[static_cast<std::size_t>(number_in(to, at))] =
        std::move(all[static_cast<std::size_t>(number_in(from, at))]);
  }
  all = {};
  const auto is_fill = [&fill](const std::string& string) { return string == fill; };
  if (!array_.writes_fill && std::all_of(copied.begin(), copied.end(), is_fill)) return;
  const std::string bytes = encode_strings(copied);
  copied = {};
  const Buffer encoded = compress(array_.compression, 1, std::as_bytes(std::span(bytes)));
  const std::span<const std::byte> part = encoded.span();
  output_.put(join_path(array_.path, metadata.key_encoding.key(chunk)), {&part, 1});
  ++objects_;
  stored_ += encoded.size();
}

}  // namespace batchfs
