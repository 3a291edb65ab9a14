#include "engine/zarr/refused_codecs.h"

#include <algorithm>
#include <iterator>

namespace batchfs {

namespace {

/// The first entry whose name is a prefix of the store's codec name counts.
struct RefusedCodec {
  std::string_view name, advice;
};

constexpr RefusedCodec kRefused[] = {
    {"fill_hdf_strings", "it makes up strings for ids of an HDF5 heap; leave the array out"},
    {"gribberish",
     "make the references with kerchunk's scan_grib, whose codec 'grib' batchfs reads"},
    {"imagecodecs_",
     "of imagecodecs, bz2, deflate, delta, floatpred, jpeg, jpeg2k, lerc, lz4h5, lzf, lzw, "
     "packbits, szip, webp, zlib and zstd are; write the array again"},
    {"msgpack2", "write the array again with vlen-utf8 or vlen-bytes"},
    {"n5_", "write the array again as Zarr"},
    {"pcodec",
     "its only decoder is a Rust library; write the array again with another codec, as zstd"},
    {"pickle",
     "to decode it is to run code that the store holds; write the array again with vlen-utf8"},
    {"szip", "batchfs reads it as imagecodecs_szip, with the filter's parameters"},
    {"vlen-array", "lists of any length fit no array; write them padded"},
};

}  // namespace

std::string refused_codec_advice(std::string_view name) {
  const auto refused =
      std::find_if(std::begin(kRefused), std::end(kRefused),
                   [name](const RefusedCodec& entry) { return name.starts_with(entry.name); });
  return refused == std::end(kRefused) ? "" : ": " + std::string(refused->advice);
}

}  // namespace batchfs
