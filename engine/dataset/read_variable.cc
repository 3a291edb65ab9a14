#include "engine/dataset/read_variable.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/base/utf8.h"
#include "engine/dataset/axis_coordinates.h"
#include "engine/dataset/converter.h"

namespace batchfs {
namespace {

/// Throws no_memory where strings that all have room for the longest take more than `memory`.
void check_strings(std::uint64_t count, std::uint64_t longest, std::uint64_t character,
                   std::uint64_t memory, const std::string& name) {
  if (count * longest * character <= memory) return;
  throw Error(ErrorCode::no_memory,
              fmt::format("{} strings with room for the longest, of {} {}, take {} of memory, and "
                          "they get {}; give more with --memory",
                          count, longest, character == 1 ? "bytes" : "characters",
                          format_size(count * longest * character), format_size(memory)),
              name);
}

/// Strings as numpy's fixed-length ones, in UCS-4.
NdArray text_array(const std::vector<std::string>& strings, const Dims& shape,
                   const std::string& name, std::uint64_t memory) {
  constexpr std::uint64_t kMaxStringBytes = UINT64_C(1) << 30;
  // Decoded twice: all of them together would take several times the memory of the result.
  std::size_t longest = 1;
  for (const std::string& string : strings) longest = std::max(longest, code_points(string).size());
  if (longest * 4 * std::max<std::size_t>(strings.size(), 1) > kMaxStringBytes)
    throw Error(ErrorCode::not_supported,
                fmt::format("{} strings, the longest of {} characters, are more than 1 GB",
                            strings.size(), longest),
                name);
  check_strings(strings.size(), longest, 4, memory, name);
  NdArray result{make_type(Kind::unicode, static_cast<std::uint32_t>(4 * longest)), shape,
                 Buffer(strings.size() * longest * 4)};
  if (result.data.size() > 0) std::memset(result.data.data(), 0, result.data.size());
  for (std::size_t i = 0; i < strings.size(); ++i)
    if (const std::u32string text = code_points(strings[i]); !text.empty())
      std::memcpy(result.data.data() + i * longest * 4, text.data(), text.size() * 4);
  return result;
}

/// Bytes of any length as numpy's fixed-length ones.
NdArray bytes_array(const std::vector<std::string>& strings, const Dims& shape,
                    const std::string& name, std::uint64_t memory) {
  constexpr std::uint64_t kMaxBytes = UINT64_C(1) << 30;
  std::size_t longest = 1;
  for (const std::string& string : strings) longest = std::max(longest, string.size());
  if (longest * std::max<std::size_t>(strings.size(), 1) > kMaxBytes)
    throw Error(ErrorCode::not_supported,
                fmt::format("{} byte strings, the longest of {} bytes, are more than 1 GB",
                            strings.size(), longest),
                name);
  check_strings(strings.size(), longest, 1, memory, name);
  NdArray result{make_type(Kind::bytes, static_cast<std::uint32_t>(longest)), shape,
                 Buffer(strings.size() * longest)};
  if (result.data.size() > 0) std::memset(result.data.data(), 0, result.data.size());
  for (std::size_t i = 0; i < strings.size(); ++i)
    if (!strings[i].empty())
      std::memcpy(result.data.data() + i * longest, strings[i].data(), strings[i].size());
  return result;
}

/// Elements as stored, in native byte order.
NdArray read_stored(const Array& array, const Box& box) {
  const Dims shape = box.shape;
  NdArray stored{array.type(), shape,
                 Buffer(static_cast<std::size_t>(element_count(shape)) * array.type().itemsize)};
  stored.type.big_endian = false;
  array.read(box, stored.data.data());
  return stored;
}

NdArray decoded(const NdArray& stored, const CfDecoding& cf) {
  NdArray result{
      cf.decoded, stored.shape,
      Buffer(static_cast<std::size_t>(element_count(stored.shape)) * cf.decoded.itemsize)};
  Converter(cf, cf.decoded)
      .convert(stored.shape, stored.data.data(), c_strides(stored.shape, stored.type.itemsize),
               result.data.data(), c_strides(result.shape, result.type.itemsize));
  return result;
}

/// Stored values of a variable, decoded as `shape`.
NdArray decoded_values(const Variable& variable, NdArray stored, const Dims& shape) {
  const CfDecoding& cf = variable.cf;
  if (cf.joined_characters > 0 || cf.is_identity()) {
    stored.type = cf.decoded;
    stored.shape = shape;
    return stored;
  }
  try {
    NdArray result = decoded(stored, cf);
    stored.data.discard();  // the pool would keep it
    return result;
  } catch (Error& error) {
    throw error.at(variable.name);
  }
}

/// Times that datetime64[ns] does not hold are left as numbers.
bool are_far_times(const CfDecoding& cf, const Error& error) {
  return cf.time == CfDecoding::Time::datetime && error.code() == ErrorCode::not_supported;
}

bool is_text(const DataType& type) {
  return type.kind == Kind::unicode || type.kind == Kind::bytes;
}

/// Texts of a fixed length with room for longer ones, as numpy promotes them.
void widen(NdArray& texts, std::uint32_t itemsize) {
  const auto count = static_cast<std::size_t>(element_count(texts.shape));
  Buffer data(count * itemsize);
  if (count > 0) std::memset(data.data(), 0, data.size());
  for (std::size_t i = 0; i < count && texts.type.itemsize > 0; ++i)
    std::memcpy(data.data() + i * itemsize, texts.data.data() + i * texts.type.itemsize,
                texts.type.itemsize);
  texts.data = std::move(data);
  texts.type.itemsize = itemsize;
}

/// Values of all parts, each at its positions.
NdArray read_parts(const Variable& variable, Decode decode) {
  NdArray result;
  for (std::size_t p = 0; p < variable.parts.size(); ++p) {
    NdArray part = read_variable(*variable.parts[p], decode);
    if (p > 0 && is_text(part.type) && part.type.kind == result.type.kind) {
      if (part.type.itemsize > result.type.itemsize) widen(result, part.type.itemsize);
      if (part.type.itemsize < result.type.itemsize) widen(part, result.type.itemsize);
    }
    const std::int64_t itemsize = part.type.itemsize;
    if (p == 0) {
      result.type = part.type;
      result.shape = variable.own_shape();
      result.data = Buffer(static_cast<std::size_t>(element_count(result.shape) * itemsize));
    } else if (!(part.type == result.type)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} in '{}' and {} in '{}'", result.type.name(),
                              variable.concat->parts[0].name, part.type.name(),
                              variable.concat->parts[p].name),
                  variable.name);
    }
    std::int64_t outer = 1, inner = itemsize;
    for (std::size_t d = 0; d < variable.concat_dim; ++d) outer *= result.shape[d];
    for (std::size_t d = variable.concat_dim + 1; d < result.shape.size(); ++d)
      inner *= result.shape[d];
    const Positions& positions = variable.concat->parts[p].positions;
    const std::int64_t from = part.shape[variable.concat_dim], to = positions.size();
    const auto [first, end] = positions.held();
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = first; i < end; ++i)
        if (positions[i] != Positions::kNone)
          std::memcpy(result.data.data() + (o * to + i) * inner,
                      part.data.data() + (o * from + positions[i]) * inner,
                      static_cast<std::size_t>(inner));
  }
  return result;
}

}  // namespace

NdArray read_variable(const Variable& variable, Decode decode) {
  if (!variable.is_readable())
    throw Error(ErrorCode::not_supported, "values cannot be read: " + variable.unsupported,
                variable.name);
  if (variable.is_concatenated()) return read_parts(variable, decode);
  if (variable.strings != nullptr) {
    const bool is_text = variable.metadata->type.kind == Kind::variable_string;
    return (is_text ? text_array : bytes_array)(variable.strings->read(), variable.shape,
                                                variable.name, variable.strings->memory());
  }
  if (variable.axis != nullptr && variable.axis->labels != nullptr)
    return text_array(*variable.axis->labels, variable.shape, variable.name, UINT64_MAX);
  if (variable.axis != nullptr) return axis_values(variable);
  NdArray stored = read_stored(*variable.array, whole_box(variable.array->shape()));
  if (decode == Decode::raw) return stored;
  return decoded_values(variable, std::move(stored), variable.shape);
}

std::uint64_t value_bytes(const Variable& variable) {
  constexpr std::uint64_t kString = 4 * 16;
  const auto count = static_cast<std::uint64_t>(element_count(variable.shape));
  return count * (variable.strings != nullptr ? kString : variable.cf.decoded.itemsize);
}

bool is_read_in_parts(const Variable& variable) {
  // Whether times are decoded depends on all of them.
  return variable.array != nullptr && !variable.is_concatenated() &&
         variable.cf.time != CfDecoding::Time::datetime && !variable.shape.empty();
}

NdArray read_part(const Variable& variable, std::int64_t first, std::int64_t count) {
  Box box = whole_box(variable.array->shape());
  box.start[0] = first;
  box.shape[0] = count;
  Dims shape = variable.shape;
  shape[0] = count;
  return decoded_values(variable, read_stored(*variable.array, box), shape);
}

Dataset::Index read_index(const Variable& variable) {
  if (variable.array == nullptr || variable.cf.time != CfDecoding::Time::datetime ||
      variable.is_concatenated())
    return {read_variable(variable), variable.cf};
  NdArray stored = read_stored(*variable.array, whole_box(variable.array->shape()));
  try {
    NdArray values = decoded(stored, variable.cf);
    stored.data.discard();  // the pool would keep it
    return {std::move(values), variable.cf};
  } catch (const Error& error) {
    if (!are_far_times(variable.cf, error)) throw;
  }
  CfDecoding numbers = cf_decoding(*variable.metadata, false, Times::numbers);
  return {decoded(stored, numbers), numbers};
}

CfDecoding settled_decoding(const Variable& variable) {
  if (variable.array == nullptr || variable.cf.time != CfDecoding::Time::datetime ||
      element_count(variable.shape) == 0)
    return variable.cf;
  const Dims shape = variable.array->shape();
  Box box{Dims(shape.size(), 0), Dims(shape.size(), 1)};
  for (int end = 0; end < 2; ++end) {
    NdArray stored;
    try {
      stored = read_stored(*variable.array, box);
    } catch (const Error&) {
      return variable.cf;  // a caller that reads the values reports it
    }
    try {
      decoded(stored, variable.cf);
    } catch (const Error& error) {
      if (!are_far_times(variable.cf, error)) throw;
      return cf_decoding(*variable.metadata, false, Times::numbers);
    }
    for (std::size_t d = 0; d < shape.size(); ++d) box.start[d] = shape[d] - 1;
  }
  return variable.cf;
}

}  // namespace batchfs
