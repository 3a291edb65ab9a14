#include "tools/inspect/coordinate_range.h"

#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "engine/dataset/converter.h"
#include "engine/dataset/read_variable.h"
#include "tools/cli/value_text.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kMaxBytes = 1 << 20, kMaxChunkBytes = 64 << 20;
constexpr std::int64_t kMaxChunks = 4, kMaxStrings = 4096;
constexpr double kSame = 1e-4;  // of a step: float32 coordinates are not exact

/// `count` elements from `first` on, decoded. Throws not_supported for times out of range.
NdArray elements(const Variable& variable, const CfDecoding& cf, std::int64_t first,
                 std::int64_t count) {
  const std::uint32_t itemsize = variable.array->type().itemsize;
  const Dims shape{count};
  Buffer stored(static_cast<std::size_t>(count) * itemsize);
  variable.array->read({Dims{first}, shape}, stored.data());
  if (cf.is_identity()) return {cf.decoded, shape, std::move(stored)};
  NdArray result{cf.decoded, shape, Buffer(static_cast<std::size_t>(count) * cf.decoded.itemsize)};
  Converter(cf, cf.decoded)
      .convert(shape, stored.data(), Dims{itemsize}, result.data.data(), Dims{cf.decoded.itemsize});
  return result;
}

/// Like elements(), but decodes times outside the range of datetime64[ns] as numbers and sets `cf`
/// accordingly.
NdArray readable_elements(const Variable& variable, CfDecoding& cf, std::int64_t first,
                          std::int64_t count) {
  try {
    return elements(variable, cf, first, count);
  } catch (const Error& error) {
    if (cf.time != CfDecoding::Time::datetime || error.code() != ErrorCode::not_supported) throw;
  }
  cf = cf_decoding(*variable.metadata, false, Times::numbers);
  return elements(variable, cf, first, count);
}

template <class T>
std::optional<double> step_of(const NdArray& values) {
  const auto count = static_cast<std::size_t>(values.shape[0]);
  const auto at = [&](std::size_t i) {
    T value;
    std::memcpy(&value, values.data.data() + i * sizeof value, sizeof value);
    return static_cast<long double>(value);
  };
  const long double step = (at(count - 1) - at(0)) / static_cast<long double>(count - 1);
  if (!std::isfinite(step) || step == 0) return std::nullopt;
  for (std::size_t i = 1; i < count; ++i)
    if (!(std::fabs(at(i) - at(i - 1) - step) <= kSame * std::fabs(step))) return std::nullopt;
  return static_cast<double>(step);
}

std::optional<double> step_of(const NdArray& values) {
  if (values.shape.size() != 1 || values.shape[0] < 2) return std::nullopt;
  const std::uint32_t size = values.type.itemsize;
  switch (values.type.kind) {
    case Kind::floating:
      return size == 4   ? step_of<float>(values)
             : size == 8 ? step_of<double>(values)
                         : std::nullopt;
    case Kind::signed_int:
      return size == 1   ? step_of<std::int8_t>(values)
             : size == 2 ? step_of<std::int16_t>(values)
             : size == 4 ? step_of<std::int32_t>(values)
                         : step_of<std::int64_t>(values);
    case Kind::unsigned_int:
      return size == 1   ? step_of<std::uint8_t>(values)
             : size == 2 ? step_of<std::uint16_t>(values)
             : size == 4 ? step_of<std::uint32_t>(values)
                         : step_of<std::uint64_t>(values);
    case Kind::datetime:
    case Kind::timedelta:
      return step_of<std::int64_t>(values);
    default:
      return std::nullopt;
  }
}

CoordinateRange range_of(const NdArray& values) {
  const auto element = [&](std::size_t i) {
    const std::byte* begin = values.data.data() + i * values.type.itemsize;
    return std::vector<std::byte>(begin, begin + values.type.itemsize);
  };
  return {values.type, element(0), element(static_cast<std::size_t>(values.shape[0]) - 1),
          step_of(values), ""};
}

CoordinateRange read_range(const Variable& variable) {
  const std::int64_t count = variable.shape[0];
  if (variable.strings != nullptr) return range_of(read_variable(variable));
  if (variable.cf.joined_characters > 0) {
    NdArray values = read_variable(variable);
    return range_of(values);
  }
  const Array& array = *variable.array;
  CfDecoding cf = variable.cf;
  const bool small = static_cast<std::uint64_t>(count) * array.type().itemsize <= kMaxBytes &&
                     array.grid().chunk_count() <= kMaxChunks;
  CoordinateRange range;
  if (small) {
    range = range_of(readable_elements(variable, cf, 0, count));
  } else {
    NdArray last = readable_elements(variable, cf, count - 1, 1);
    const bool numbers = !cf.note.empty();
    range = range_of(readable_elements(variable, cf, 0, 1));
    if (!numbers && !cf.note.empty()) last = readable_elements(variable, cf, count - 1, 1);
    range.last.assign(last.data.data(), last.data.data() + last.type.itemsize);
    range.step = std::nullopt;
  }
  range.note = cf.note;
  return range;
}

/// "2000-01-01T06:00:00.000000000" -> "2000-01-01T06:00", "2000-01-01T00:00:00" -> "2000-01-01".
std::string short_time(std::string text) {
  if (const std::size_t point = text.rfind('.'); point != std::string::npos) {
    text.resize(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  for (const char* end : {"T00:00:00", ":00"})
    if (text.find('T') != std::string::npos && text.find('.') == std::string::npos &&
        text.ends_with(end)) {
      text.resize(text.size() - std::strlen(end));
      break;
    }
  return text;
}

/// Nanoseconds as "6 h", "1 d".
std::string time_step_text(double nanoseconds) {
  struct Unit {
    const char* name;
    double nanoseconds;
  };
  constexpr std::array<Unit, 6> kUnits{
      {{"d", 86400e9}, {"h", 3600e9}, {"min", 60e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}}};
  if (nanoseconds == 0) return "0";
  for (const Unit& unit : kUnits) {
    const double count = nanoseconds / unit.nanoseconds;
    if (std::fabs(count) >= 1 && std::fabs(count - std::round(count)) < 1e-9)
      return fmt::format("{:.0f} {}", count, unit.name);
  }
  return fmt::format("{:g} s", nanoseconds / 1e9);
}

std::string value_text(const DataType& type, const std::vector<std::byte>& element) {
  std::string text;
  append_value(text, type, element.data(), TextStyle::people);
  if (type.kind == Kind::timedelta && type.unit == "ns") {
    std::int64_t count;
    std::memcpy(&count, element.data(), sizeof count);
    if (count != INT64_MIN) return time_step_text(static_cast<double>(count));
  }
  if (type.is_float() && text.ends_with(".0")) text.resize(text.size() - 2);
  return type.kind == Kind::datetime ? short_time(std::move(text)) : text;
}

}  // namespace

std::optional<CoordinateRange> coordinate_range(const Variable& variable) {
  if (!variable.is_readable() || variable.shape.size() != 1 || variable.shape[0] < 1)
    return std::nullopt;
  const bool whole = variable.strings != nullptr || variable.cf.joined_characters > 0;
  if (whole && variable.shape[0] > kMaxStrings) return std::nullopt;
  if (variable.axis != nullptr) return std::nullopt;
  if (variable.array != nullptr && variable.array->chunk_bytes() > kMaxChunkBytes)
    return std::nullopt;
  return read_range(variable);
}

std::string range_text(const CoordinateRange& range, const std::string& units) {
  std::string text = value_text(range.type, range.first);
  const std::string last = value_text(range.type, range.last);
  if (last != text) text += " to " + last;
  if (!units.empty()) text += " " + units;
  if (!range.step) return text;
  const bool time = range.type.kind == Kind::datetime || range.type.kind == Kind::timedelta;
  if (!time) return text + fmt::format(", step {:.6g}", *range.step);
  return range.type.unit == "ns" ? text + ", step " + time_step_text(*range.step) : text;
}

}  // namespace batchfs
