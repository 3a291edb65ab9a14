#pragma once
// Stores in memory whose variables use different codecs, with some chunks missing.

#include <string>

#include <blosc.h>
#include <bzlib.h>
#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/unit/engine/dataset/memory_data.h"
#include "tests/unit/gpu/emulate.h"

namespace batchfs::gpu {

inline Json compressor_of(const std::string& coding) {
  if (coding == "zstd") return {{"id", "zstd"}, {"level", 3}};
  if (coding == "lz4") return {{"id", "lz4"}, {"acceleration", 1}};
  if (coding == "bz2") return {{"id", "bz2"}, {"level", 1}};
  if (coding == "shuffle-zlib") return {{"id", "zlib"}, {"level", 4}};
  if (coding.starts_with("blosc-"))
    return {{"id", "blosc"},
            {"cname", coding.substr(6)},
            {"clevel", 5},
            {"shuffle", 1},
            {"blocksize", 0}};
  return nullptr;
}

/// HDF5's filter before deflate.
inline Json filters_of(const std::string& coding) {
  if (coding == "shuffle-zlib") return {{{"id", "shuffle"}, {"elementsize", 4}}};
  return nullptr;
}

inline std::string encoded(const std::string& coding, const std::string& chunk) {
  std::string out(2 * chunk.size() + 4096, 0);
  std::size_t size = 0;
  if (coding == "raw") return chunk;
  if (coding == "zstd") size = ZSTD_compress(out.data(), out.size(), chunk.data(), chunk.size(), 3);
  if (coding == "bz2") {
    auto got = static_cast<unsigned>(out.size());
    BZ2_bzBuffToBuffCompress(out.data(), &got, const_cast<char*>(chunk.data()),
                             static_cast<unsigned>(chunk.size()), 1, 0, 0);
    size = got;
  }
  if (coding == "shuffle-zlib") {
    std::string shuffled = chunk;
    for (std::size_t i = 0; i < chunk.size(); ++i)
      shuffled[i % 4 * (chunk.size() / 4) + i / 4] = chunk[i];
    uLongf got = out.size();
    compress2(reinterpret_cast<Bytef*>(out.data()), &got,
              reinterpret_cast<const Bytef*>(shuffled.data()), shuffled.size(), 4);
    size = got;
  }
  if (coding == "lz4") {
    const auto decoded = static_cast<std::uint32_t>(chunk.size());
    std::memcpy(out.data(), &decoded, 4);
    size = 4 + static_cast<std::size_t>(LZ4_compress_default(chunk.data(), out.data() + 4,
                                                             static_cast<int>(chunk.size()),
                                                             static_cast<int>(out.size() - 4)));
  }
  if (coding.starts_with("blosc-"))
    size = static_cast<std::size_t>(blosc_compress_ctx(5, BLOSC_SHUFFLE, 4, chunk.size(),
                                                       chunk.data(), out.data(), out.size(),
                                                       coding.substr(6).c_str(), 0, 1));
  out.resize(size);
  return out;
}

/// Seven variables (time, y, x), each coded in another way, chunks of `steps` steps.
inline MemoryData coded_data(std::int64_t times, std::int64_t steps, std::int64_t ny,
                             std::int64_t nx) {
  MemoryData data;
  unsigned seed = 0;
  for (const std::string coding :
       {"raw", "zstd", "blosc-lz4", "blosc-zstd", "lz4", "bz2", "shuffle-zlib"}) {
    const std::string name = "v" + std::to_string(++seed);
    const Json zarray = {{"zarr_format", 2},
                         {"shape", {times, ny, nx}},
                         {"chunks", {steps, ny, nx}},
                         {"dtype", "<f4"},
                         {"compressor", compressor_of(coding)},
                         {"order", "C"},
                         {"filters", filters_of(coding)},
                         {"fill_value", nullptr},
                         {"dimension_separator", "."}};
    data.hierarchy.arrays[name] =
        parse_array_v2(name, zarray, {{"_ARRAY_DIMENSIONS", {"time", "y", "x"}}}, name);
    for (std::int64_t t = 0; t < (times + steps - 1) / steps; ++t) {
      if (t % 7 == 5) continue;  // missing
      const auto values = make_data(Data::packed, static_cast<std::size_t>(steps * ny * nx) * 4,
                                    seed * 100 + static_cast<unsigned>(t));
      data.store->objects[name + "/" + std::to_string(t) + ".0.0"] =
          encoded(coding, std::string(values.begin(), values.end()));
    }
  }
  return data;
}

/// All of them stacked, and the same a step later.
inline const char* const kPairs = R"({"window": {"time": 1}, "batch": 4,
  "tensors": {"x": {"variables": ["v1", "v2", "v3", "v4", "v5", "v6", "v7"], "stack": "channel", "dims": ["channel", "y", "x"]},
              "y": {"variables": ["v1", "v2", "v3", "v4", "v5", "v6", "v7"], "stack": "channel", "dims": ["channel", "y", "x"],
                    "offsets": {"time": [1]}}}})";

}  // namespace batchfs::gpu
