#pragma once
// Zarr data types as numpy knows them. Sources: Zarr v2 specification (data type encoding, numpy's
// array interface typestr), v3 core specification section "Data types", zarr-extensions registry.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"

namespace batchfs {

enum class Kind : std::uint8_t {
  boolean,          // 1 byte, any non-zero is true
  signed_int,       // 1, 2, 4, 8
  unsigned_int,     // 1, 2, 4, 8
  floating,         // 2, 4, 8
  bfloat16,         // 2: the upper half of a float32; of tensors only, numpy has none
  complex,          // 8, 16
  datetime,         // int64 counts of `unit` since 1970-01-01; INT64_MIN is NaT
  timedelta,        // int64 counts of `unit`; INT64_MIN is NaT
  bytes,            // S: NUL-padded bytes
  unicode,          // U: NUL-padded UCS-4
  raw,              // V: bytes without meaning (v2 |V, v3 r*)
  structured,       // fields
  variable_string,  // v2 |O with vlen-utf8, v3 string
  variable_bytes,   // v2 |O with vlen-bytes, v3 variable_length_bytes
};

/// Bytes of one element. Limits the memory that a hostile data type takes.
inline constexpr std::uint32_t kMaxItemBytes = 1 << 20;
/// Structured types in structured types.
inline constexpr int kMaxTypeDepth = 16;

struct Field;

struct DataType {
  Kind kind = Kind::floating;
  std::uint32_t itemsize = 8;   // bytes of one element; 0 for variable lengths
  bool big_endian = false;      // of the stored bytes; values in memory are always native (little)
  std::string unit;             // datetime, timedelta: "ns", "D", ...; "generic" when unit-less
  std::int32_t multiplier = 1;  // datetime, timedelta: 25 in "M8[25us]"
  std::vector<Field> fields;    // structured

  bool is_variable() const { return kind == Kind::variable_string || kind == Kind::variable_bytes; }
  bool is_integer() const { return kind == Kind::signed_int || kind == Kind::unsigned_int; }
  bool is_float() const { return kind == Kind::floating || kind == Kind::bfloat16; }

  /// numpy's name: "float32", "datetime64[ns]", "<U7" as "str7"'s numpy spelling "<U7", "|S3",
  /// "bool".
  std::string name() const;
  /// The `descr` of an .npy header, native byte order: "'<f4'" or, for structured types, the list.
  /// Throws not_supported for bfloat16.
  std::string npy_descr() const;

  friend bool operator==(const DataType&, const DataType&);
};

struct Field {
  std::string name;
  DataType type;
  std::vector<std::int64_t> shape;  // sub-array shape, empty for scalars
  std::uint32_t offset = 0;         // bytes from the element's start; fields are packed

  std::uint32_t bytes() const;
};

/// Is this a unit of numpy's times? "generic" is none.
bool is_time_unit(std::string_view unit);

/// The common types, native order.
DataType make_type(Kind kind, std::uint32_t itemsize);
DataType float32();
DataType float64();
DataType bfloat16();
DataType datetime_ns();

/// "float32", "<f4", "int16", "datetime64[ns]" ...: the names a view or a numcodecs `dtype` uses.
/// Throws invalid_argument.
DataType parse_numpy_type(const std::string& name);

/// The v2 `dtype` of a type of fixed size, with its byte orders. Throws not_supported for bfloat16.
Json v2_descr(const DataType& type);

/// A v2 `dtype`: a typestr or a list of fields. Object types ("|O") are resolved by the filters
/// (`object_codec`: the first filter's id, "vlen-utf8", ...). Throws not_supported by name.
DataType parse_v2_type(const JsonRef& dtype, const std::string& object_codec);

/// A v3 `data_type`: a name or {name, configuration}. Byte order comes from the bytes codec.
DataType parse_v3_type(const JsonRef& data_type);

/// Sets the byte order of a type and of all its fields.
void set_byte_order(DataType& type, bool big_endian);

/// Reverses the bytes of every word (elements, complex parts, UCS-4 characters, fields) in place.
void swap_bytes(const DataType& type, std::byte* data, std::size_t elements);

/// One element, native order, `type.itemsize` bytes, from a v2 or v3 `fill_value`; zeros for null.
/// Lenient where writers are (zarr.md 1.1: stringified numbers, floats on integer types, base64).
std::vector<std::byte> parse_fill_value(const DataType& type, const JsonRef& fill);

}  // namespace batchfs
