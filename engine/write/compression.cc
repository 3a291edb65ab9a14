#include "engine/write/compression.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

#include <blosc.h>
#include <fmt/format.h>
#include <libdeflate.h>
#include <zstd.h>

#include "engine/base/per_thread.h"
#include "engine/base/strings.h"

namespace batchfs {

namespace {

using Method = Compression::Method;

struct MethodForm {
  Method method;
  std::string_view name;
  int min_level, max_level, default_level;
};
// Levels as the libraries have them. Zstandard's beyond 19 take much memory for little.
constexpr MethodForm kMethods[] = {{Method::none, "none", 0, 0, 0},
                                   {Method::zstd, "zstd", -7, 19, 3},
                                   {Method::blosc, "blosc", 0, 9, 5},
                                   {Method::gzip, "gzip", 0, 9, 5}};
constexpr std::string_view kBloscInner[] = {"lz4", "lz4hc", "blosclz", "zlib", "zstd"};

const MethodForm& form_of(Method method) {
  return *std::find_if(std::begin(kMethods), std::end(kMethods),
                       [method](const MethodForm& form) { return form.method == method; });
}

constexpr std::uint64_t kDeflateMemory = 9 << 20;  // of libdeflate, level 12
constexpr std::uint64_t kMaxBloscBlock = 4 << 20, kMaxBloscZstdBlock = 1 << 20;  // bytes
constexpr std::uint64_t kBloscCodecMemory = 1 << 20;  // hash tables of its codecs but Zstandard
constexpr int kMaxZstdLevel = 22;

/// Maximum memory of a Zstandard context, for versions 1.4 to 1.5. Not asked of the library: the
/// plan of a copy must not depend on its version, and only programs with its static form can ask.
std::uint64_t zstd_memory(int level, std::uint64_t bytes) {
  struct Tables {
    int max_level;
    std::uint64_t mebibytes;  // for inputs of any size
  };
  // 0 is level 3.
  constexpr Tables kTables[] = {{3, 2},   {6, 4},   {8, 7},   {9, 13},
                                {11, 25}, {18, 66}, {19, 84}, {22, 390}};
  // For short inputs the tables are smaller.
  constexpr std::uint64_t kAlways = 256 << 10, kPerByte = 28;
  const Tables* tables = std::begin(kTables);
  while (level > tables->max_level) ++tables;
  const std::uint64_t most = tables->mebibytes << 20;
  return bytes >= most / kPerByte ? most : kAlways + kPerByte * bytes;
}

int shuffle_of(std::uint32_t itemsize) { return itemsize == 1 ? BLOSC_BITSHUFFLE : BLOSC_SHUFFLE; }

struct ZstdCompressor {
  ZSTD_CCtx* const of_library = ZSTD_createCCtx();
  ZstdCompressor() {
    if (of_library == nullptr) throw Error(ErrorCode::no_memory, "no memory for the zstd encoder");
  }
  ~ZstdCompressor() { ZSTD_freeCCtx(of_library); }
};

std::size_t compress_zstd(int level, std::span<const std::byte> in, std::span<std::byte> out) {
  static PerThread<ZstdCompressor> compressors;
  const std::size_t size = ZSTD_compressCCtx(compressors.get().of_library, out.data(), out.size(),
                                             in.data(), in.size(), level);
  if (ZSTD_isError(size))
    throw Error(ErrorCode::internal,
                fmt::format("zstd does not compress: {}", ZSTD_getErrorName(size)));
  return size;
}

std::size_t compress_blosc(const Compression& how, std::uint32_t itemsize,
                           std::span<const std::byte> in, std::span<std::byte> out) {
  if (in.size() > BLOSC_MAX_BUFFERSIZE)
    throw Error(ErrorCode::not_supported,
                "Blosc holds at most 2 GB in a chunk; choose smaller chunks or zstd");
  const int size =
      blosc_compress_ctx(how.level, shuffle_of(itemsize), itemsize <= 255 ? itemsize : 1, in.size(),
                         in.data(), out.data(), out.size(), how.inner.c_str(), 0, 1);
  if (size <= 0)
    throw Error(ErrorCode::internal, fmt::format("Blosc does not compress ({})", size));
  return static_cast<std::size_t>(size);
}

std::size_t compress_gzip(int level, std::span<const std::byte> in, std::span<std::byte> out) {
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
      libdeflate_alloc_compressor(level), libdeflate_free_compressor);
  if (compressor == nullptr) throw Error(ErrorCode::no_memory, "no memory for the gzip encoder");
  const std::size_t size =
      libdeflate_gzip_compress(compressor.get(), in.data(), in.size(), out.data(), out.size());
  if (size == 0) throw Error(ErrorCode::internal, "gzip does not compress");
  return size;
}

}  // namespace

Compression parse_compression(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  const auto wrong = [&text](const std::string& why) {
    return Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a codec: {}", text, why));
  };
  const auto form = std::find_if(std::begin(kMethods), std::end(kMethods),
                                 [&](const MethodForm& one) { return one.name == parts[0]; });
  if (form == std::end(kMethods))
    throw wrong("use zstd, blosc, gzip or none, with a level: zstd:9, blosc:lz4:5");
  Compression result{form->method, form->default_level, {}};
  std::size_t next = 1;
  if (result.method == Method::blosc) {
    result.inner = "lz4";
    if (next < parts.size() && std::find(std::begin(kBloscInner), std::end(kBloscInner),
                                         parts[next]) != std::end(kBloscInner))
      result.inner = parts[next++];
  }
  if (next < parts.size() && result.method != Method::none) {
    const bool negative = parts[next].starts_with('-');
    const auto level = parse_exact_number(parts[next].substr(negative ? 1 : 0));
    if (!level || *level > 100) throw wrong(fmt::format("'{}' is not a level", parts[next]));
    result.level = static_cast<int>(*level) * (negative ? -1 : 1);
    if (result.level < form->min_level || result.level > form->max_level)
      throw wrong(
          fmt::format("{} has the levels {} to {}", form->name, form->min_level, form->max_level));
    ++next;
  }
  if (next != parts.size()) throw wrong(fmt::format("'{}' is too much", parts[next]));
  return result;
}

std::string compression_text(const Compression& compression) {
  const std::string name(form_of(compression.method).name);
  if (compression.method == Method::none) return name;
  return compression.inner.empty()
             ? fmt::format("{}:{}", name, compression.level)
             : fmt::format("{}:{}:{}", name, compression.inner, compression.level);
}

Json v3_codec(const Compression& how, std::uint32_t itemsize) {
  switch (how.method) {
    case Method::zstd:
      return {{"name", "zstd"}, {"configuration", {{"level", how.level}, {"checksum", false}}}};
    case Method::gzip:
      return {{"name", "gzip"}, {"configuration", {{"level", how.level}}}};
    case Method::blosc:
      return {{"name", "blosc"},
              {"configuration",
               {{"typesize", std::max(itemsize, 1u)},
                {"cname", how.inner},
                {"clevel", how.level},
                {"shuffle", itemsize == 1 ? "bitshuffle" : "shuffle"},
                {"blocksize", 0}}}};
    case Method::none:
      break;
  }
  return nullptr;
}

Json v2_compressor(const Compression& how, std::uint32_t itemsize) {
  switch (how.method) {
    case Method::zstd:
      return {{"id", "zstd"}, {"level", how.level}};
    case Method::gzip:
      return {{"id", "gzip"}, {"level", how.level}};
    case Method::blosc:
      return {{"id", "blosc"},
              {"cname", how.inner},
              {"clevel", how.level},
              {"shuffle", shuffle_of(itemsize)},
              {"blocksize", 0}};
    case Method::none:
      break;
  }
  return nullptr;
}

std::uint64_t compressed_bound(const Compression& how, std::uint64_t bytes) {
  switch (how.method) {
    case Method::zstd:
      return ZSTD_compressBound(bytes);
    case Method::gzip:
      return libdeflate_gzip_compress_bound(nullptr, bytes);
    case Method::blosc:
      return bytes + BLOSC_MAX_OVERHEAD;
    case Method::none:
      break;
  }
  return bytes;
}

std::uint64_t encoder_memory(const Compression& how, std::uint64_t bytes) {
  switch (how.method) {
    case Method::zstd:
      return zstd_memory(how.level, bytes);
    case Method::gzip:
      return kDeflateMemory;
    case Method::blosc: {
      // A block is shuffled and encoded at a time; Blosc's levels are mapped to those of its codec.
      if (how.inner != "zstd") return 3 * std::min(bytes, kMaxBloscBlock) + kBloscCodecMemory;
      const std::uint64_t block = std::min(bytes, kMaxBloscZstdBlock);
      return 3 * block + zstd_memory(how.level < 9 ? 2 * how.level - 1 : kMaxZstdLevel, block);
    }
    case Method::none:
      break;
  }
  return 0;
}

Buffer compress(const Compression& how, std::uint32_t itemsize, std::span<const std::byte> bytes) {
  Buffer out(compressed_bound(how, bytes.size()));
  switch (how.method) {
    case Method::zstd:
      out.truncate(compress_zstd(how.level, bytes, out.span()));
      break;
    case Method::gzip:
      out.truncate(compress_gzip(how.level, bytes, out.span()));
      break;
    case Method::blosc:
      out.truncate(compress_blosc(how, std::max(itemsize, 1u), bytes, out.span()));
      break;
    case Method::none:
      if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  }
  return out;
}

}  // namespace batchfs
