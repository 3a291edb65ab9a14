// Decoding with every codec, of whole chunks and of ranges, which must agree; the first byte
// selects the codec. GRIB messages are only checked, without calling ecCodes.

#include "engine/codec/codec.h"
#include "engine/array/string_form.h"
#include "engine/codec/optional/grib_message.h"
#include "tests/fuzz/fuzz.h"

namespace batchfs {
namespace {

struct Coded {
  std::string name;
  Json configuration;
  DataType type;
  const SmallNumber* stored;
  Coded(std::string coded_by, std::string_view json, DataType of, std::string_view small = "")
      : name(std::move(coded_by)),
        configuration(parse_json(json, "fuzz")),
        type(of),
        stored(find_small_number(small)) {}
};

const std::vector<Coded>& codecs() {
  static const DataType byte = make_type(Kind::unsigned_int, 1),
                        integer = make_type(Kind::signed_int, 4),
                        real = make_type(Kind::floating, 4),
                        text = make_type(Kind::variable_string, 0);
  static const std::vector<Coded> all = {
      {"blosc", "{}", byte},
      {"zstd", "{}", byte},
      {"lz4", "{}", byte},
      {"gzip", "{}", byte},
      {"zlib", "{}", byte},
      {"bz2", "{}", byte},
      {"lzma", "{}", byte},
      {"lzma", R"({"format": 2})", byte},
      {"lzma", R"({"format": 3, "filters": [{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]})",
       byte},
      {"crc32c", "{}", byte},
      {"crc32", "{}", byte},
      {"adler32", "{}", byte},
      {"shuffle", R"({"elementsize": 4})", byte},
      {"delta", R"({"dtype": "<i4"})", integer},
      {"packbits", "{}", make_type(Kind::boolean, 1)},
      {"fixedscaleoffset", R"({"offset": 1, "scale": 10, "dtype": "<f4", "astype": "<i2"})", real},
      {"astype", R"({"encode_dtype": "<i2", "decode_dtype": "<f4"})", real},
      {"bytes", R"({"endian": "big"})", integer},
      {"transpose", R"({"order": [1, 0]})", integer},
      {"sharding_indexed",
       R"({"chunk_shape": [8, 16], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
          {"name": "zstd", "configuration": {}}], "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]})",
       integer},
      {"sharding_indexed",
       R"({"chunk_shape": [16, 8], "index_location": "start", "codecs": [{"name": "bytes",
          "configuration": {"endian": "little"}}], "index_codecs": [{"name": "bytes",
          "configuration": {"endian": "little"}}, {"name": "crc32c"}]})",
       integer},
      {"fletcher32", "{}", byte},
      {"jenkins_lookup3", R"({"initval": 3})", byte},
      {"categorize", R"({"labels": ["a", "bc"], "dtype": "<U2", "astype": "|u1"})",
       make_type(Kind::unicode, 8)},
      {"record_member", R"({"member": "y", "dtype": [["x", "<i2"], ["y", "<i4"]]})", integer},
      {"zfpy", "{}", real},
      {"vlen-utf8", "{}", text},
      {"vlen-bytes", "{}", make_type(Kind::variable_bytes, 0)},
      {"json2", "{}", text},
      {"categorize", R"({"labels": ["a", "bc"], "astype": "|u1"})", text},
      {"grib", "{}", real},
      {"n5_default",
       R"({"codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}},
          {"name": "bytes", "configuration": {"endian": "big"}}, {"name": "zstd"}]})",
       integer},
      {"imagecodecs_lz4h5", "{}", byte},
      {"imagecodecs_lzf", "{}", byte},
      {"imagecodecs_szip",
       R"({"options_mask": 141, "pixels_per_block": 8, "bits_per_pixel": 32, "pixels_per_scanline": 20})",
       byte},
      {"scale_offset", R"({"scale": -3, "offset": 5})", integer},
      {"scale_offset", R"({"scale": 0.1, "offset": 5})", real},
      {"cast_value",
       R"({"data_type": "float64", "out_of_range": "clamp", "scalar_map": {"decode": [["NaN", 7]]}})",
       integer},
      {"cast_value", R"({"data_type": "int16", "rounding": "towards-zero"})", real},
      {"cast_value", R"({"data_type": "float64", "out_of_range": "wrap"})", byte},
      {"ChunkyCodec", R"({"endian": "big"})", integer},
      {"HorizontalDeltaCodec", "{}", integer},
      {"imagecodecs_delta", R"({"axis": 0})", integer},
      {"imagecodecs_floatpred", R"({"shape": [32, 64], "dtype": "<f4", "dist": 2})", real},
      {"imagecodecs_lzw", "{}", byte},
      {"imagecodecs_packbits", "{}", byte},
      {"reshape", R"({"shape": [[0], 2, -1]})", integer},
      {"bytes", R"({"endian": "big"})", real, "bfloat16"},
      {"bytes", "{}", make_type(Kind::floating, 2), "float8_e4m3fn"},
      {"bytes", "{}", make_type(Kind::signed_int, 1), "int4"},
      {"imagecodecs_jpeg", "{}", byte},
      {"imagecodecs_jpeg", R"({"tables": "/9j/2Q==", "colorspace_data": "RGB"})", byte},
      {"imagecodecs_jpeg2k", "{}", byte},
      {"imagecodecs_lerc", "{}", byte},
      {"imagecodecs_webp", "{}", byte},
  };
  return all;
}

}  // namespace
}  // namespace batchfs

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace batchfs;
  Input input(data, size);
  const Coded& coded = codecs()[input.number<std::uint8_t>() % codecs().size()];
  const auto offset = input.number<std::uint16_t>(), length = input.number<std::uint16_t>();
  const std::span<const std::byte> rest = input.rest();
  // Each input gets its own memory, so that an access past its end is detected.
  const std::vector<std::byte> stored(rest.begin(), rest.end());
  ChunkLayout layout{{32, 64}, coded.type, std::vector<std::byte>(coded.type.itemsize)};
  layout.stored = coded.stored;
  if (coded.type.is_variable()) {
    std::vector<std::string> strings;
    const auto form = make_string_form({coded.name, coded.configuration}, coded.type.kind);
    if (attempt([&] { strings = form->decode(stored, length, UINT64_MAX / 4); }))
      must(strings.size() == length);
    return 0;
  }
  const std::size_t room = 32 * 64 * coded.type.itemsize;
  if (coded.name == "grib") {
    attempt([&] {
      must(check_grib_message(stored, length).padding <= std::uint64_t{16} * length + 64);
    });
    return 0;
  }
  std::unique_ptr<Codec> codec;
  const auto make = [&] {
    codec = find_codec(coded.name)(JsonRef(coded.configuration, coded.name), layout);
  };
  if (!attempt(make)) return 0;  // its library is not installed

  std::vector<std::byte> whole(room);
  std::size_t got = 0;
  const bool decoded = attempt([&] { got = codec->decode(stored, whole); });
  must(got <= room);
  if (!codec->has_ranges()) return 0;
  std::vector<std::byte> part(std::min<std::size_t>(length, room - offset % room));
  const std::uint64_t first = offset % room;
  attempt([&] { codec->range_granularity(stored); });
  const bool ranged = attempt([&] { codec->decode_range(stored, room, first, part); });
  // A range may decode where the whole does not; it must not differ where the whole decodes.
  if (decoded && got == room && ranged)
    must(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)));

  // The pieces that stored_spans() names must suffice for the same result.
  for (std::uint64_t head = std::min<std::uint64_t>(64, stored.size());;) {
    std::optional<std::vector<Codec::Span>> spans;
    std::uint64_t more = 0;
    const std::span<const std::byte> seen = std::span(stored).first(head);
    if (!attempt(
            [&] { spans = codec->stored_spans(seen, stored.size(), first, part.size(), &more); }))
      break;
    if (!spans) {
      if (more <= head || more > stored.size()) break;
      head = more;
      continue;
    }
    std::vector<std::byte> pieces(stored.size(), std::byte{0xa5});
    std::copy(seen.begin(), seen.end(), pieces.begin());
    for (const Codec::Span& span : *spans) {
      must(span.offset <= stored.size() && span.length <= stored.size() - span.offset);
      std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(span.offset), span.length,
                  pieces.begin() + static_cast<std::ptrdiff_t>(span.offset));
    }
    std::vector<std::byte> again(part.size());
    const bool from_pieces = attempt([&] { codec->decode_range(pieces, room, first, again); });
    // The pieces of a damaged frame may not suffice; decoding them then fails.
    if (decoded && got == room) must(from_pieces);
    if (ranged && from_pieces) must(again == part);
    break;
  }
  return 0;
}
