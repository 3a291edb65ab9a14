#pragma once
// Reading FlatBuffers: tables, vectors, strings and structs of a buffer that may be hostile.
//
// Format: "FlatBuffer Internals" of flatbuffers.dev. Every offset and count is checked when it is
// followed, so nothing has to be verified first, and unread fields cost nothing. Offsets to tables,
// vectors and strings point forwards and have a depth that the caller's schema bounds: loops are
// impossible. Several may point to one place: callers that copy the targets must bound the sum.

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace batchfs::icechunk {

using Bytes = std::span<const std::byte>;

[[noreturn]] void throw_flat_damage(const char* what);

/// A vector of structs or numbers of `stride` bytes each.
struct FlatVector {
  Bytes bytes;
  std::uint32_t count = 0;
  std::uint32_t stride = 1;
  bool present = false;

  Bytes at(std::uint32_t index) const {
    if (index >= count) throw_flat_damage("an index past a vector's end");
    return bytes.subspan(std::size_t{index} * stride, stride);
  }
};

class FlatTables;

/// A table. Views the buffer, which outlives it. Fields are named by their number in the schema;
/// accessors throw corrupt.
class FlatTable {
 public:
  FlatTable(Bytes buffer, std::uint64_t position);
  /// The root table of a buffer whose file identifier is `identifier`.
  static FlatTable root(Bytes buffer, std::string_view identifier);

  bool has(int field) const { return position_of(field, 0) != 0; }
  template <class Number>
  Number number(int field, Number otherwise) const {
    const std::uint64_t at = position_of(field, sizeof(Number));
    if (at == 0) return otherwise;
    Number value;
    std::memcpy(&value, buffer_.data() + at, sizeof value);
    return value;
  }
  /// A struct inside the table; empty where absent.
  Bytes structure(int field, std::size_t size) const {
    const std::uint64_t at = position_of(field, size);
    return at == 0 ? Bytes() : buffer_.subspan(at, size);
  }
  FlatVector vector(int field, std::uint32_t stride) const;
  Bytes bytes(int field) const { return vector(field, 1).bytes; }
  std::string_view text(int field) const;
  /// Throws for an absent table: `what` names it.
  FlatTable table(int field, const char* what) const;
  FlatTables tables(int field) const;
  std::vector<std::string_view> texts(int field) const;

 private:
  /// Position of the field's value of `size` bytes; 0: absent.
  std::uint64_t position_of(int field, std::size_t size) const;
  /// The vector or text at `at`, which begins with its count.
  FlatVector vector_at(std::uint64_t at, std::uint32_t stride) const;
  /// Target of the field's offset; 0: absent.
  std::uint64_t target_of(int field) const;

  Bytes buffer_;
  std::uint64_t position_, vtable_;
  std::uint16_t vtable_size_, table_size_;
};

/// A vector of tables.
class FlatTables {
 public:
  FlatTables() = default;
  FlatTables(Bytes buffer, std::uint64_t first, std::uint32_t count)
      : buffer_(buffer), first_(first), count_(count) {}
  std::uint32_t size() const { return count_; }
  FlatTable operator[](std::uint32_t index) const;

 private:
  Bytes buffer_;
  std::uint64_t first_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace batchfs::icechunk
