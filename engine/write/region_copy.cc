#include "engine/write/region_copy.h"

#include <algorithm>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "engine/codec/crc32c.h"
#include "engine/write/region_boxes.h"
#include "engine/zarr/node_path.h"

namespace batchfs {

namespace {

/// Decoded bytes of the chunks of one item, at least: so that many small chunks cost little.
constexpr std::uint64_t kItemBytes = 256 << 10;

bool is_run(const Dims& shape, const Dims& strides, std::int64_t itemsize) {
  std::int64_t expected = itemsize;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] > 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

std::int64_t items_of(std::int64_t count, std::int64_t per_item) {
  return ceil_div(count, per_item);
}

std::int64_t group_size(std::uint64_t bytes) {
  return static_cast<std::int64_t>(
      std::max<std::uint64_t>(1, kItemBytes / std::max<std::uint64_t>(bytes, 1)));
}

/// Are all elements this one?
bool is_all(std::span<const std::byte> values, const std::vector<std::byte>& element) {
  const std::size_t size = element.size();
  return size > 0 && values.size() >= size &&
         std::memcmp(values.data(), element.data(), size) == 0 &&
         std::memcmp(values.data(), values.data() + size, values.size() - size) == 0;
}

Buffer copy_of(const Buffer& buffer) {
  Buffer copy(buffer.size());
  std::copy_n(buffer.data(), buffer.size(), copy.data());
  return copy;
}

bool has_swapped(const DataType& type) {
  return type.big_endian || std::any_of(type.fields.begin(), type.fields.end(),
                                        [](const Field& field) { return has_swapped(field.type); });
}

}  // namespace

ChunkReader::ChunkReader(const Array& array, const Box& region)
    : array_(array),
      region_(region),
      strides_(c_strides(region.shape, array.type().itemsize)),
      chunks_(units_in(region, array.grid().chunk_shape())),
      chunks_per_item_(group_size(array.chunk_bytes())),
      items_(static_cast<std::size_t>(items_of(chunks_.elements(), chunks_per_item_))) {}

void ChunkReader::read(std::size_t item, std::byte* values) const {
  const std::int64_t first = static_cast<std::int64_t>(item) * chunks_per_item_;
  const std::int64_t end = std::min(chunks_.elements(), first + chunks_per_item_);
  for (std::int64_t number = first; number < end; ++number) {
    const Dims chunk = position_in(chunks_, number);
    const Box box = array_.grid().box(chunk);
    const Box part{Dims(box.shape.size()), box.shape};
    std::byte* const to = values + byte_offset(box.start, region_.start, strides_);
    if (array_.store().is_local()) {
      Array::Loaded loaded;
      array_.load(chunk, part, to, strides_, &loaded);
    } else {
      array_.decode(chunk, array_.fetch(chunk, part), part, to, strides_);
    }
  }
}

ObjectWriter::ObjectWriter(const OutputArray& array, OutputStore& output, const Box& region)
    : array_(array),
      output_(output),
      region_(region),
      strides_(c_strides(region.shape, array.metadata->type.itemsize)),
      objects_(units_in(region, array.chunks.object)),
      inner_(array.chunks.chunk.size()),
      chunks_per_item_(group_size(array.chain->decoded_size())),
      under_way_(static_cast<std::size_t>(objects_.elements())) {
  for (std::size_t d = 0; d < inner_.size(); ++d)
    inner_[d] = array.chunks.object[d] / array.chunks.chunk[d];
  chunks_per_object_ = element_count(inner_);
  for (Object& object : under_way_) object.left = chunks_per_object_;
  items_ = static_cast<std::size_t>(
      items_of(objects_.elements() * chunks_per_object_, chunks_per_item_));
}

void ObjectWriter::write(std::size_t item, const std::byte* values) {
  const std::int64_t all = objects_.elements() * chunks_per_object_;
  const std::int64_t first = static_cast<std::int64_t>(item) * chunks_per_item_;
  const Box inner = whole_box(inner_);
  for (std::int64_t n = first; n < std::min(all, first + chunks_per_item_); ++n) {
    const auto number = static_cast<std::size_t>(n / chunks_per_object_);
    const std::int64_t within = n % chunks_per_object_;
    const Dims object = object_index(number);
    Dims chunk = position_in(inner, within);
    for (std::size_t d = 0; d < chunk.size(); ++d) chunk[d] += object[d] * inner_[d];
    Object& holder = under_way_[number];
    Buffer encoded = encode(chunk, values);
    // It was made for the worst case, and waits for the object's other chunks.
    if (chunks_per_object_ > 1) encoded = copy_of(encoded);
    {
      // The first of an object's chunks makes room for all.
      const std::lock_guard lock(mutex_);
      if (holder.chunks.empty()) holder.chunks.resize(static_cast<std::size_t>(chunks_per_object_));
      holder.chunks[static_cast<std::size_t>(within)] = std::move(encoded);
    }
    if (--holder.left == 0) put(number);
  }
}

Dims ObjectWriter::object_index(std::size_t object) const {
  return position_in(objects_, static_cast<std::int64_t>(object));
}

Buffer ObjectWriter::encode(const Dims& chunk, const std::byte* values) const {
  const ArrayMetadata& metadata = *array_.metadata;
  const DataType& type = metadata.type;
  const Dims& shape = array_.chunks.chunk;
  Box box{Dims(shape.size()), shape};
  bool is_whole = true;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    box.start[d] = chunk[d] * shape[d];
    if (box.start[d] >= metadata.shape[d]) return {};  // of the last shard, beyond the array
    box.shape[d] = std::min(shape[d], metadata.shape[d] - box.start[d]);
    is_whole = is_whole && box.shape[d] == shape[d];
  }
  const std::byte* from = values + byte_offset(box.start, region_.start, strides_);
  const std::uint64_t bytes = array_.chain->decoded_size();
  Buffer own;
  if (!is_whole || !is_run(box.shape, strides_, type.itemsize)) {
    own = Buffer(bytes);
    const Dims to_strides = c_strides(shape, type.itemsize);
    if (!is_whole)
      fill_strided(shape, type.itemsize, metadata.fill_value.data(), own.data(), to_strides);
    copy_strided(box.shape, type.itemsize, from, strides_, own.data(), to_strides);
    from = own.data();
  }
  const std::span<const std::byte> elements(from, bytes);
  if (!array_.writes_fill && is_all(elements, metadata.fill_value)) return {};
  Buffer encoded;
  if (has_swapped(type)) {
    Buffer swapped(bytes);
    std::memcpy(swapped.data(), from, bytes);
    swap_bytes(type, swapped.data(), bytes / type.itemsize);
    encoded = compress(array_.compression, type.itemsize, swapped.span());
  } else {
    encoded = compress(array_.compression, type.itemsize, elements);
  }
  // A reader must get the same values: the decoder is another program than the encoder.
  Buffer decoded(bytes);
  array_.chain->decode(encoded.span(), decoded.span());
  if (std::memcmp(decoded.data(), from, bytes) != 0)
    throw Error(ErrorCode::internal, "an encoded chunk decodes to other values",
                join_path(array_.path, metadata.key_encoding.key(chunk)));
  return encoded;
}

void ObjectWriter::put(std::size_t number) {
  std::vector<Buffer> chunks;
  {
    const std::lock_guard lock(mutex_);
    chunks = std::move(under_way_[number].chunks);
  }
  const bool is_empty = std::all_of(chunks.begin(), chunks.end(),
                                    [](const Buffer& chunk) { return chunk.size() == 0; });
  if (is_empty) return;
  const std::string key =
      join_path(array_.path, array_.metadata->key_encoding.key(object_index(number)));
  std::vector<std::span<const std::byte>> parts;
  std::vector<std::uint64_t> index;
  std::uint64_t offset = 0;
  for (const Buffer& chunk : chunks) {
    if (chunk.size() == 0) {
      index.insert(index.end(), 2, UINT64_MAX);
      continue;
    }
    parts.push_back(chunk.span());
    index.insert(index.end(), {offset, chunk.size()});
    offset += chunk.size();
  }
  std::uint32_t checksum = 0;
  if (array_.chunks.is_sharded) {
    const std::span<const std::byte> entries = std::as_bytes(std::span(index));
    checksum = crc32c(entries);
    parts.push_back(entries);
    parts.push_back(std::as_bytes(std::span(&checksum, 1)));
    offset += entries.size() + sizeof checksum;
  }
  output_.put(key, parts);
  stored_bytes_ += offset;
  ++objects_put_;
}

}  // namespace batchfs
