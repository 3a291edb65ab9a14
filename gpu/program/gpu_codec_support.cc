#include "gpu/program/gpu_codec_support.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace batchfs::gpu {

namespace {

/// Bytes of the words that a byte order turns around; 0 where they differ within an element.
std::uint32_t word_of(const DataType& type) {
  switch (type.kind) {
    case Kind::structured:
      return 0;
    case Kind::complex:
      return type.itemsize / 2;
    case Kind::unicode:
      return 4;
    case Kind::bytes:
    case Kind::raw:
    case Kind::boolean:
      return 1;
    default:
      return type.itemsize;
  }
}

/// v3 core, codec "transpose": encoded dimension i is decoded dimension order[i].
std::vector<std::size_t> order_of(const JsonRef& configuration, std::size_t rank) {
  std::vector<std::size_t> order(rank);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const JsonRef json = configuration.at("order");
  if (json.is_string()) {
    if (json.string() == "F") std::reverse(order.begin(), order.end());
    return order;
  }
  const auto elements = json.elements();
  for (std::size_t i = 0; i < rank; ++i)
    order[i] =
        static_cast<std::size_t>(elements.at(i).integer(0, static_cast<std::int64_t>(rank) - 1));
  return order;
}

constexpr std::uint32_t kMaxItem = 255;  // that a GPU unshuffles

/// Compressors whose bytes may be shuffled; references to HDF5 and TIFF files have imagecodecs'
/// names. Its raw deflate, which no decoder here takes, is refused with the array.
std::optional<GpuCodecSupport::Kind> compressor_of(std::string_view name) {
  if (name == "zstd" || name == "imagecodecs_zstd") return GpuCodecSupport::Kind::zstd;
  if (name == "lz4") return GpuCodecSupport::Kind::lz4;
  if (name == "zlib" || name == "imagecodecs_zlib" || name == "imagecodecs_deflate")
    return GpuCodecSupport::Kind::zlib;
  if (name == "gzip") return GpuCodecSupport::Kind::gzip;
  return std::nullopt;
}

}  // namespace

ChunkForm cpu_form(const Array& array) {
  return {c_strides(array.grid().chunk_shape(), array.type().itemsize), 1};
}

GpuCodecSupport gpu_codec_support(const Array& array) {
  GpuCodecSupport coding;
  coding.form = cpu_form(array);
  const DataType& type = array.type();
  const auto for_cpu = [&](std::string why) {
    coding.kind = GpuCodecSupport::Kind::cpu;
    coding.form = cpu_form(array);
    coding.why_cpu = std::move(why);
    return coding;
  };
  if (array.metadata().stored != nullptr)
    return for_cpu(fmt::format("values of the type {}", array.metadata().stored->name));
  if (type.is_variable()) return for_cpu("values of variable length");
  const Dims& shape = array.grid().chunk_shape();
  std::vector<std::size_t> order(shape.size());  // of the dimensions as encoded
  std::iota(order.begin(), order.end(), std::size_t{0});
  coding.kind = GpuCodecSupport::Kind::raw;
  for (const CodecSpec& spec : array.chain().specs()) {
    const JsonRef configuration(spec.configuration, spec.name);
    const bool is_raw = coding.kind == GpuCodecSupport::Kind::raw;
    const bool is_shuffled = coding.item > 1;
    if (spec.name == "transpose") {
      const std::vector<std::size_t> turned = order_of(configuration, shape.size()), before = order;
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = before[turned[i]];
    } else if (spec.name == "bytes" || spec.name == "endian") {
      const auto endian = configuration.find("endian");
      const std::uint32_t word = word_of(type);
      if (word == 0) return for_cpu("structured values");
      coding.form.swap = endian && endian->string() == "big" ? static_cast<std::uint8_t>(word) : 1;
    } else if (spec.name == "shuffle" && is_raw && !is_shuffled) {
      const auto item = configuration.find("elementsize");
      coding.item =
          static_cast<std::uint32_t>(item && !item->is_null() ? item->integer(1, 1 << 20) : 4);
      if (coding.item > kMaxItem)
        return for_cpu(fmt::format("shuffled items of {} bytes", coding.item));
    } else if (spec.name == "blosc" && is_raw && !is_shuffled) {
      coding.kind = GpuCodecSupport::Kind::blosc;
    } else if (const auto compressor = compressor_of(spec.name); compressor && is_raw) {
      coding.kind = *compressor;
    } else {
      return for_cpu(fmt::format("the codec '{}'", spec.name));
    }
  }
  std::int64_t stride = type.itemsize;
  for (std::size_t i = order.size(); i-- > 0;) {
    coding.form.strides[order[i]] = stride;
    stride *= shape[order[i]];
  }
  return coding;
}

}  // namespace batchfs::gpu
