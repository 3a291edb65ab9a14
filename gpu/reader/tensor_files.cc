#include "gpu/reader/tensor_files.h"

#include <charconv>
#include <cstring>
#include <string_view>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"

namespace batchfs::reader {

namespace {

[[noreturn]] void corrupt(const char* what) { throw Error(ErrorCode::corrupt, what); }

std::uint64_t little_endian(const Mapping& memory, std::uint64_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value |= std::to_integer<std::uint64_t>(memory.data()[at + static_cast<std::uint64_t>(i)])
             << (8 * i);
  return value;
}

/// "(3, 2, )" and "(3,)" are how tuples are written.
std::vector<std::int64_t> parse_shape(std::string_view text) {
  std::vector<std::int64_t> shape;
  while (!text.empty()) {
    if (text.front() == ' ' || text.front() == ',') {
      text.remove_prefix(1);
      continue;
    }
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc()) corrupt("an npy header's shape cannot be read");
    shape.push_back(n);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return shape;
}

void place(Tensor& tensor, const Mapping& memory, std::uint64_t offset) {
  tensor.bytes = bytes_of(tensor.shape, tensor.info->dtype.itemsize);
  if (offset > memory.size() || tensor.bytes > memory.size() - offset)
    corrupt("a tensor is longer than its file");
  tensor.data = memory.data() + offset;
}

}  // namespace

Tensor npy_tensor(const Mapping& memory, const TensorInfo& info) {
  if (memory.size() < 12 || std::memcmp(memory.data(), "\x93NUMPY", 6) != 0)
    corrupt("it is not an npy file");
  const bool long_header = std::to_integer<int>(memory.data()[6]) >= 2;
  const std::uint64_t begin = long_header ? 12 : 10;
  const std::uint64_t length = little_endian(memory, 8, long_header ? 4 : 2);
  if (length > memory.size() - begin) corrupt("an npy header is longer than its file");
  const std::string_view header(reinterpret_cast<const char*>(memory.data()) + begin, length);
  if (header.find("'descr': '" + info.dtype.typestr + "'") == std::string_view::npos ||
      header.find("'fortran_order': False") == std::string_view::npos)
    corrupt("an npy header says another data type than the schema");
  constexpr std::string_view kShape = "'shape': (";
  const std::size_t at = header.find(kShape), end = header.find(')', at);
  if (at == std::string_view::npos || end == std::string_view::npos)
    corrupt("an npy header has no shape");
  Tensor tensor{.info = &info};
  tensor.shape = parse_shape(header.substr(at + kShape.size(), end - at - kShape.size()));
  if (tensor.shape.size() != info.shape.size())
    corrupt("an npy header's shape is not the schema's");
  place(tensor, memory, begin + length);
  return tensor;
}

std::vector<Tensor> safetensors_tensors(const Mapping& memory, const Schema& schema) {
  if (memory.size() < 8) corrupt("it is not a safetensors file");
  const std::uint64_t length = little_endian(memory, 0, 8);
  if (length > memory.size() - 8) corrupt("a safetensors header is longer than its file");
  try {
    const auto* text = reinterpret_cast<const char*>(memory.data()) + 8;
    const auto header = nlohmann::json::parse(text, text + length);
    std::vector<Tensor> tensors;
    for (const TensorInfo& info : schema.tensors) {
      const auto& entry = header.at(info.name);
      Tensor tensor{.info = &info};
      tensor.shape = entry.at("shape").get<std::vector<std::int64_t>>();
      const auto offsets = entry.at("data_offsets").get<std::vector<std::uint64_t>>();
      if (offsets.size() != 2 || offsets[0] > memory.size() - 8 - length)
        corrupt("a tensor is outside of its file");
      place(tensor, memory, 8 + length + offsets[0]);
      if (offsets[1] - offsets[0] != tensor.bytes)
        corrupt("a safetensors header says another size than the schema");
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::corrupt, error.what());
  }
}

}  // namespace batchfs::reader
