// The index of a shard, read on its own: the places of the inner chunks.

#include "engine/codec/sharding.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace batchfs;
  static const Json configuration = parse_json(
      R"({"chunk_shape": [2, 3], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
          "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]})",
      "fuzz");
  static const ShardLayout layout(
      JsonRef(configuration, "sharding"),
      ChunkLayout{{4, 6}, make_type(Kind::signed_int, 4), std::vector<std::byte>(4)});
  Input input(data, size);
  const auto object_size = input.number<std::uint64_t>();
  attempt([&] {
    const ShardIndex index(layout, input.rest(), object_size);
    for (std::int64_t inner = 0; inner < 4; ++inner) {
      attempt([&] {
        if (const auto entry = index.entry(inner)) {
          must(entry->offset <= object_size && entry->length <= object_size - entry->offset);
        }
      });
    }
  });
  return 0;
}
