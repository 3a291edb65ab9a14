#include "engine/store/icechunk/flat_table.h"

#include <string>

#include "engine/store/little_endian.h"

namespace batchfs::icechunk {

namespace {

/// Throws unless `size` bytes lie at `position`.
void check_inside(Bytes buffer, std::uint64_t position, std::uint64_t size) {
  if (position > buffer.size() || buffer.size() - position < size)
    throw_flat_damage("an offset past the end");
}

/// Where the offset at `position` leads to.
std::uint64_t follow(Bytes buffer, std::uint64_t position) {
  check_inside(buffer, position, sizeof(std::uint32_t));
  const auto offset = little_endian<std::uint32_t>(buffer, position);
  if (offset == 0) throw_flat_damage("an offset that leads nowhere");
  return position + offset;
}

}  // namespace

void throw_flat_damage(const char* what) {
  throw Error(ErrorCode::corrupt, std::string("damaged FlatBuffers data: ") + what);
}

FlatTable::FlatTable(Bytes buffer, std::uint64_t position) : buffer_(buffer), position_(position) {
  check_inside(buffer_, position_, sizeof(std::int32_t));
  const std::int64_t back = little_endian<std::int32_t>(buffer_, position_);
  const std::int64_t vtable = static_cast<std::int64_t>(position_) - back;
  if (vtable < 0) throw_flat_damage("a table's fields before the beginning");
  vtable_ = static_cast<std::uint64_t>(vtable);
  check_inside(buffer_, vtable_, 4);
  vtable_size_ = little_endian<std::uint16_t>(buffer_, vtable_);
  table_size_ = little_endian<std::uint16_t>(buffer_, vtable_ + 2);
  if (vtable_size_ < 4 || vtable_size_ % 2 != 0 || table_size_ < 4)
    throw_flat_damage("a table without fields");
  check_inside(buffer_, vtable_, vtable_size_);
  check_inside(buffer_, position_, table_size_);
}

FlatTable FlatTable::root(Bytes buffer, std::string_view identifier) {
  check_inside(buffer, 0, 8);
  if (std::memcmp(buffer.data() + 4, identifier.data(), identifier.size()) != 0)
    throw_flat_damage("another file identifier");
  return {buffer, follow(buffer, 0)};
}

std::uint64_t FlatTable::position_of(int field, std::size_t size) const {
  const std::uint64_t slot = 4 + 2 * static_cast<std::uint64_t>(field);
  if (slot + 2 > vtable_size_) return 0;
  const auto offset = little_endian<std::uint16_t>(buffer_, vtable_ + slot);
  if (offset == 0) return 0;
  if (offset < 4 || offset + size > table_size_) throw_flat_damage("a field outside its table");
  return position_ + offset;
}

std::uint64_t FlatTable::target_of(int field) const {
  const std::uint64_t at = position_of(field, sizeof(std::uint32_t));
  return at == 0 ? 0 : follow(buffer_, at);
}

FlatVector FlatTable::vector(int field, std::uint32_t stride) const {
  const std::uint64_t at = target_of(field);
  return at == 0 ? FlatVector{{}, 0, stride, false} : vector_at(at, stride);
}

FlatVector FlatTable::vector_at(std::uint64_t at, std::uint32_t stride) const {
  check_inside(buffer_, at, sizeof(std::uint32_t));
  const auto count = little_endian<std::uint32_t>(buffer_, at);
  const std::uint64_t size = std::uint64_t{count} * stride;
  check_inside(buffer_, at + 4, size);
  return {buffer_.subspan(at + 4, size), count, stride, true};
}

std::string_view FlatTable::text(int field) const {
  const Bytes found = bytes(field);
  return {reinterpret_cast<const char*>(found.data()), found.size()};
}

FlatTable FlatTable::table(int field, const char* what) const {
  const std::uint64_t at = target_of(field);
  if (at == 0) throw_flat_damage(what);
  return {buffer_, at};
}

FlatTables FlatTable::tables(int field) const {
  const FlatVector offsets = vector(field, sizeof(std::uint32_t));
  if (!offsets.present) return {};
  return {buffer_, static_cast<std::uint64_t>(offsets.bytes.data() - buffer_.data()),
          offsets.count};
}

std::vector<std::string_view> FlatTable::texts(int field) const {
  const FlatVector offsets = vector(field, sizeof(std::uint32_t));
  std::vector<std::string_view> found;
  for (std::uint32_t i = 0; i < offsets.count; ++i) {
    const auto at = static_cast<std::uint64_t>(offsets.at(i).data() - buffer_.data());
    const Bytes text = vector_at(follow(buffer_, at), 1).bytes;
    found.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
  }
  return found;
}

FlatTable FlatTables::operator[](std::uint32_t index) const {
  if (index >= count_) throw_flat_damage("an index past a vector's end");
  return {buffer_, follow(buffer_, first_ + std::uint64_t{index} * sizeof(std::uint32_t))};
}

}  // namespace batchfs::icechunk
