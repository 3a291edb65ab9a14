#include "engine/dataset/label_number.h"

#include <algorithm>
#include <system_error>

namespace batchfs {

std::from_chars_result read_label_number(const char* begin, const char* end, LabelNumber& number) {
  double rounded = 0;
  const std::from_chars_result found = std::from_chars(begin, end, rounded);
  if (found.ec != std::errc()) return found;
  number = rounded;
  const char* const digits = begin + (*begin == '-' ? 1 : 0);
  if (!std::all_of(digits, found.ptr, [](char c) { return c >= '0' && c <= '9'; })) return found;
  // Beyond 64 bits it is rounded, and still more than every label.
  return std::from_chars(begin, found.ptr, number);
}

LabelNumber label_number(const Json& json) {
  if (json.is_number_unsigned()) return static_cast<LabelNumber>(json.get<std::uint64_t>());
  if (json.is_number_integer()) return static_cast<LabelNumber>(json.get<std::int64_t>());
  return json.get<double>();
}

LabelNumber label_number(const NdArray& values, std::int64_t i) {
  switch (values.type.kind) {
    case Kind::signed_int:
      switch (values.type.itemsize) {
        case 1:
          return element_of<std::int8_t>(values, i);
        case 2:
          return element_of<std::int16_t>(values, i);
        case 4:
          return element_of<std::int32_t>(values, i);
        default:
          return static_cast<LabelNumber>(element_of<std::int64_t>(values, i));
      }
    case Kind::unsigned_int:
    case Kind::boolean:
      switch (values.type.itemsize) {
        case 1:
          return element_of<std::uint8_t>(values, i);
        case 2:
          return element_of<std::uint16_t>(values, i);
        case 4:
          return element_of<std::uint32_t>(values, i);
        default:
          return static_cast<LabelNumber>(element_of<std::uint64_t>(values, i));
      }
    case Kind::floating:
      switch (values.type.itemsize) {
        case 2:
          return static_cast<double>(element_of<_Float16>(values, i));
        case 4:
          return element_of<float>(values, i);
        default:
          return element_of<double>(values, i);
      }
    case Kind::datetime:
    case Kind::timedelta: {
      const std::int64_t count = label_count(values, i);
      return count == INT64_MIN ? std::numeric_limits<LabelNumber>::quiet_NaN()
                                : static_cast<LabelNumber>(count);
    }
    default:
      throw Error(ErrorCode::not_supported, "values of type " + values.type.name() +
                                                " have no labels; use positions, as in '#0:#4'");
  }
}

std::int64_t label_count(const NdArray& values, std::int64_t i) {
  return element_of<std::int64_t>(values, i);
}

LabelNumber as_stored(LabelNumber number, const DataType& type) {
  if (!type.is_float()) return number;
  switch (type.itemsize) {
    case 2:
      return static_cast<double>(static_cast<_Float16>(static_cast<double>(number)));
    case 4:
      return static_cast<float>(number);
    default:
      return static_cast<double>(number);
  }
}

}  // namespace batchfs
