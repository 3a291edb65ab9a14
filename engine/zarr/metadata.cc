#include "engine/zarr/metadata.h"

#include <fmt/format.h>

#include "engine/base/json_limits.h"
#include "engine/base/limits.h"
#include "engine/base/strings.h"
#include "engine/zarr/chunk_grid.h"

namespace batchfs {

namespace {
/// Larger chunks cannot be decoded on any machine; metadata with larger ones is wrong.
constexpr std::uint64_t kMaxChunk = UINT64_C(1) << 40;
}  // namespace

Dims parse_dims(const JsonRef& list, std::int64_t least) {
  const std::vector<JsonRef> elements = list.elements();
  if (elements.size() > kMaxArrayDims)
    throw list.error(fmt::format("more than {} dimensions are not supported", kMaxArrayDims),
                     ErrorCode::not_supported);
  Dims dims;
  for (const JsonRef& element : elements) dims.push_back(element.integer(least));
  return dims;
}

char parse_separator(const JsonRef& json) {
  const std::string text = json.string();
  if (text != "." && text != "/") throw json.error("expected \".\" or \"/\"");
  return text.front();
}

void check_sizes(const ArrayMetadata& array) {
  const ChunkGrid grid(array.shape, array.chunk_shape);
  const std::uint64_t itemsize = std::max<std::uint64_t>(array.type.itemsize, 1);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(element_count(array.shape)), itemsize,
                             &bytes) ||
      bytes > static_cast<std::uint64_t>(INT64_MAX))
    throw Error(ErrorCode::not_supported, "arrays larger than 2^63 bytes are not supported");
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(element_count(array.chunk_shape)), itemsize,
                             &bytes) ||
      bytes > kMaxChunk)
    throw Error(ErrorCode::not_supported, "chunks larger than 1 TB are not supported");
}

void check_codec_count(std::size_t count) {
  if (count > kMaxCodecs)
    throw Error(ErrorCode::not_supported,
                fmt::format("{} codecs in one chain; at most {} are supported", count, kMaxCodecs));
}

std::uint64_t memory_of(const ArrayMetadata& array) {
  std::uint64_t bytes = sizeof array + array.path.capacity() + array.fill_value.capacity() +
                        array.unsupported.capacity() + json_memory(array.document) +
                        json_memory(array.attributes) + json_memory(array.fill_value_json);
  for (const CodecSpec& codec : array.codecs)
    bytes += sizeof codec + json_memory(codec.configuration);
  for (const auto& name : array.dimension_names)
    bytes += sizeof name + (name ? name->capacity() : 0);
  return bytes + array.type.fields.size() * sizeof(Field);
}

std::string ChunkKeyEncoding::key(const Dims& chunk) const {
  std::string key = style == Style::v3_default ? "c" : "";
  for (std::size_t d = leading; d < chunk.size(); ++d) {
    if (!key.empty()) key += separator;
    key += std::to_string(chunk[d]);
  }
  return key.empty() ? "0" : key;
}

}  // namespace batchfs
