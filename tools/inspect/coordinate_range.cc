#include "tools/inspect/coordinate_range.h"

#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "engine/dataset/converter.h"
#include "engine/dataset/labels.h"
#include "engine/dataset/read_variable.h"
#include "tools/cli/value_text.h"
#include "tools/inspect/even_step.h"
#include "tools/page/number_text.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kMaxBytes = 1 << 20, kMaxChunkBytes = 64 << 20;
constexpr std::int64_t kMaxChunks = 4, kMaxStrings = 4096;

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

/// The range of `values`: all labels, or the first and the last.
CoordinateRange range_of(NdArray values, const CfDecoding& cf, bool all) {
  const Dataset::Index index{std::move(values), cf};
  const NdArray& labels = index.values;
  const std::int64_t count = labels.shape[0];
  const auto element = [&](std::int64_t i) {
    const std::byte* begin =
        labels.data.data() + static_cast<std::size_t>(i) * labels.type.itemsize;
    return std::vector<std::byte>(begin, begin + labels.type.itemsize);
  };
  CoordinateRange range{labels.type, element(0), element(count - 1), std::nullopt, std::nullopt};
  const auto times = TimeAxis::of(index);
  if (!times || labels.type.kind == Kind::datetime) {
    if (all) range.step = even_step(labels);
    return range;
  }
  range.dates = {times->calendar(), times->text(0), times->text(count - 1),
                 cf.counts_from->step_ns};
  if (all)
    if (const auto step = even_step(*times, count))
      range.step = *step / static_cast<double>(cf.counts_from->step_ns);
  return range;
}

CoordinateRange read_range(const Variable& variable) {
  const std::int64_t count = variable.shape[0];
  CfDecoding cf = variable.cf;
  if (variable.strings != nullptr || cf.joined_characters > 0)
    return range_of(read_variable(variable), cf, true);
  const Array& array = *variable.array;
  const bool small = static_cast<std::uint64_t>(count) * array.type().itemsize <= kMaxBytes &&
                     array.grid().chunk_count() <= kMaxChunks;
  if (small) {
    NdArray values = readable_elements(variable, cf, 0, count);
    return range_of(std::move(values), cf, true);
  }
  NdArray last = readable_elements(variable, cf, count - 1, 1);
  const bool numbers = !cf.note.empty();
  const NdArray first = readable_elements(variable, cf, 0, 1);
  if (!numbers && !cf.note.empty()) last = readable_elements(variable, cf, count - 1, 1);
  NdArray ends{first.type, {2}, Buffer(2 * first.data.size())};
  std::memcpy(ends.data.data(), first.data.data(), first.data.size());
  std::memcpy(ends.data.data() + first.data.size(), last.data.data(), first.data.size());
  return range_of(std::move(ends), cf, false);
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
  const auto& dates = range.dates;
  std::string text = dates ? short_time(dates->first) : value_text(range.type, range.first);
  const std::string last = dates ? short_time(dates->last) : value_text(range.type, range.last);
  if (last != text) text += " to " + last;
  if (dates)
    text.append(" ").append(calendar_name(dates->calendar));
  else if (!units.empty())
    text += " " + units;
  if (!range.step) return text;
  if (dates)
    return text + ", step " +
           time_step_text(*range.step * static_cast<double>(dates->count_nanoseconds));
  const bool time = range.type.kind == Kind::datetime || range.type.kind == Kind::timedelta;
  if (!time) return text + ", step " + number_text(*range.step, 6);
  return range.type.unit == "ns" ? text + ", step " + time_step_text(*range.step) : text;
}

}  // namespace batchfs
