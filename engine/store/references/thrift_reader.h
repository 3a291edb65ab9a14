#pragma once
// Reading Thrift's compact protocol, in which Parquet describes its files, from bytes that may be
// hostile.
//
// Source: apache/thrift doc/specs/thrift-compact-protocol.md. Nothing is allocated: a list's length
// is only a promise.

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/base/error.h"

namespace batchfs::references {

/// Not thread-safe. Every member throws corrupt.
class ThriftReader {
 public:
  enum class Type : std::uint8_t {
    stop,
    yes,
    no,
    byte,
    i16,
    i32,
    i64,
    real,
    binary,
    list,
    set,
    map,
    structure,
    uuid
  };

  /// Views `bytes`.
  explicit ThriftReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// The fields of a structure: begin with a new one of these.
  struct Field {
    std::int32_t id = 0;
    Type type = Type::stop;
  };
  /// The next field of the structure that `field` was last read of; false at its end. The value
  /// that follows must be read or skipped.
  bool next(Field& field);

  /// A value of one of the whole types; of a field, `type` is the field's.
  std::int64_t integer(Type type);
  std::string_view binary(Type type);
  static bool boolean(Type type);
  struct List {
    Type type;
    std::uint64_t size;  // elements, at most the bytes that are left
  };
  List list(Type type);
  void skip(Type type, int depth = 0);

  /// Bytes read so far.
  std::size_t position() const { return at_; }

 private:
  std::uint8_t byte();
  std::uint64_t varint();
  std::int64_t zigzag();

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace batchfs::references
