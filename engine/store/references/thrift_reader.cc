#include "engine/store/references/thrift_reader.h"

namespace batchfs::references {

namespace {

constexpr int kMaxThriftDepth = 16;

[[noreturn]] void damaged() {
  throw Error(ErrorCode::corrupt, "the Parquet file's description is damaged");
}

}  // namespace

std::uint8_t ThriftReader::byte() {
  if (at_ >= bytes_.size()) damaged();
  return std::to_integer<std::uint8_t>(bytes_[at_++]);
}

std::uint64_t ThriftReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const std::uint8_t next = byte();
    value |= std::uint64_t{next & 0x7fu} << shift;
    if ((next & 0x80) == 0) return value;
  }
  damaged();
}

std::int64_t ThriftReader::zigzag() {
  const std::uint64_t value = varint();
  return static_cast<std::int64_t>((value >> 1) ^ (0 - (value & 1)));
}

bool ThriftReader::next(Field& field) {
  const std::uint8_t head = byte();
  field.type = static_cast<Type>(head & 15);
  if (field.type == Type::stop) return false;
  if (field.type > Type::uuid) damaged();
  const std::int64_t id = (head >> 4) != 0 ? field.id + (head >> 4) : zigzag();
  if (id < 0 || id > INT16_MAX) damaged();
  field.id = static_cast<std::int32_t>(id);
  return true;
}

std::int64_t ThriftReader::integer(Type type) {
  if (type == Type::byte) return static_cast<std::int8_t>(byte());
  if (type != Type::i16 && type != Type::i32 && type != Type::i64) damaged();
  return zigzag();
}

std::string_view ThriftReader::binary(Type type) {
  if (type != Type::binary) damaged();
  const std::uint64_t size = varint();
  if (size > bytes_.size() - at_) damaged();
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
  at_ += size;
  return text;
}

bool ThriftReader::boolean(Type type) {
  if (type != Type::yes && type != Type::no) damaged();
  return type == Type::yes;
}

ThriftReader::List ThriftReader::list(Type type) {
  if (type != Type::list && type != Type::set) damaged();
  const std::uint8_t head = byte();
  const List found{static_cast<Type>(head & 15), (head >> 4) != 15 ? head >> 4 : varint()};
  // fastparquet writes empty lists without a type.
  if ((found.type == Type::stop && found.size > 0) || found.type > Type::uuid ||
      found.size > bytes_.size() - at_)
    damaged();
  return found;
}

void ThriftReader::skip(Type type, int depth) {
  if (depth == kMaxThriftDepth) damaged();
  switch (type) {
    case Type::yes:
    case Type::no:
      return;
    case Type::byte:
      byte();
      return;
    case Type::i16:
    case Type::i32:
    case Type::i64:
      varint();
      return;
    case Type::real:
    case Type::uuid: {
      const std::size_t size = type == Type::real ? 8 : 16;
      if (size > bytes_.size() - at_) damaged();
      at_ += size;
      return;
    }
    case Type::binary:
      binary(type);
      return;
    case Type::list:
    case Type::set: {
      const List elements = list(type);
      for (std::uint64_t i = 0; i < elements.size; ++i) {
        if (elements.type == Type::yes || elements.type == Type::no)
          byte();  // in lists they take one
        else
          skip(elements.type, depth + 1);
      }
      return;
    }
    case Type::map: {
      const std::uint64_t size = varint();
      if (size == 0) return;
      if (size > bytes_.size() - at_) damaged();
      const std::uint8_t types = byte();
      for (std::uint64_t i = 0; i < size; ++i) {
        for (const int half : {types >> 4, types & 15}) {
          const auto of = static_cast<Type>(half);
          if (of == Type::yes || of == Type::no)
            byte();
          else
            skip(of, depth + 1);
        }
      }
      return;
    }
    case Type::structure:
      for (Field field; next(field);) skip(field.type, depth + 1);
      return;
    default:
      damaged();
  }
}

}  // namespace batchfs::references
