#include "gpu/program/gpu_codec_support.h"

#include <algorithm>
#include <numeric>

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
    const bool first = coding.kind == GpuCodecSupport::Kind::raw;
    if (spec.name == "transpose") {
      const std::vector<std::size_t> turned = order_of(configuration, shape.size()), before = order;
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = before[turned[i]];
    } else if (spec.name == "bytes" || spec.name == "endian") {
      const auto endian = configuration.find("endian");
      const std::uint32_t word = word_of(type);
      if (word == 0) return for_cpu("structured values");
      coding.form.swap = endian && endian->string() == "big" ? static_cast<std::uint8_t>(word) : 1;
    } else if (spec.name == "shuffle" && first) {
      const auto item = configuration.find("elementsize");
      coding.kind = GpuCodecSupport::Kind::shuffle;
      coding.item = static_cast<std::uint32_t>(item ? item->integer(1, 1 << 20) : 4);
    } else if (spec.name == "blosc" && first) {
      coding.kind = GpuCodecSupport::Kind::blosc;
    } else if (spec.name == "zstd" && first) {
      coding.kind = GpuCodecSupport::Kind::zstd;
    } else if (spec.name == "lz4" && first) {
      coding.kind = GpuCodecSupport::Kind::lz4;
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
