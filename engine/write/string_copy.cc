#include "engine/write/string_copy.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "engine/array/string_array.h"
#include "engine/write/region_boxes.h"
#include "engine/zarr/chunk_grid.h"
#include "engine/zarr/node_path.h"

namespace batchfs {

namespace {

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

CopiedStrings copy_strings(const std::shared_ptr<Store>& store,
                           const std::shared_ptr<const ArrayMetadata>& source,
                           const OutputArray& array, OutputStore& output) {
  const std::vector<std::string> all = StringArray(store, source).read();
  const ArrayMetadata& metadata = *array.metadata;
  const std::string fill =
      metadata.fill_value_json.is_string() ? metadata.fill_value_json.get<std::string>() : "";
  const ChunkGrid grid(metadata.shape, array.chunks.chunk);
  const Box whole = whole_box(metadata.shape);
  CopiedStrings copied;
  for (std::int64_t number = 0; number < grid.chunk_count(); ++number) {
    const Dims chunk = grid.chunk(number);
    const Box box = grid.box(chunk);
    // Chunks have their full shape, also at the end of the array.
    std::vector<std::string> strings(static_cast<std::size_t>(element_count(array.chunks.chunk)),
                                     fill);
    const Box full{box.start, array.chunks.chunk};
    for (std::int64_t i = 0; i < box.elements(); ++i) {
      const Dims at = position_in(box, i);
      strings[static_cast<std::size_t>(number_in(full, at))] =
          all[static_cast<std::size_t>(number_in(whole, at))];
    }
    if (std::all_of(strings.begin(), strings.end(),
                    [&fill](const std::string& string) { return string == fill; }))
      continue;
    const std::string bytes = encode_strings(strings);
    const Buffer encoded = compress(array.compression, 1, std::as_bytes(std::span(bytes)));
    const std::span<const std::byte> part = encoded.span();
    output.put(join_path(array.path, metadata.key_encoding.key(chunk)), {&part, 1});
    ++copied.objects;
    copied.stored_bytes += encoded.size();
  }
  return copied;
}

}  // namespace batchfs
