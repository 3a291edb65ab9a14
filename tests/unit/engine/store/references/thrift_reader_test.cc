#include "engine/store/references/thrift_reader.h"

#include <vector>

#include <gtest/gtest.h>

namespace batchfs {
namespace thrift_reader_test {

using references::ThriftReader;
using Type = ThriftReader::Type;

std::vector<std::byte> bytes_of(std::vector<int> numbers) {
  std::vector<std::byte> bytes;
  for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
  return bytes;
}

TEST(ThriftReader, ReadsFields) {
  // 1: i32 -1, 3: binary "ab", 20: list of i32 [1, 2], 21: true, 22: struct {1: i64 300}
  const auto bytes = bytes_of(
      {0x15, 0x01, 0x28, 2, 'a', 'b', 0x09, 40, 0x25, 2, 4, 0x11, 0x1c, 0x16, 0xd8, 0x04, 0, 0});
  ThriftReader reader(bytes);
  ThriftReader::Field field;
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.id, 1);
  EXPECT_EQ(reader.integer(field.type), -1);
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.id, 3);
  EXPECT_EQ(reader.binary(field.type), "ab");
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.id, 20);
  const auto list = reader.list(field.type);
  EXPECT_EQ(list.size, 2u);
  EXPECT_EQ(reader.integer(list.type), 1);
  EXPECT_EQ(reader.integer(list.type), 2);
  ASSERT_TRUE(reader.next(field));
  EXPECT_TRUE(ThriftReader::boolean(field.type));
  ASSERT_TRUE(reader.next(field));
  ThriftReader::Field inner;
  ASSERT_TRUE(reader.next(inner));
  EXPECT_EQ(reader.integer(inner.type), 300);
  EXPECT_FALSE(reader.next(inner));
  EXPECT_FALSE(reader.next(field));
  EXPECT_EQ(reader.position(), bytes.size());
}

TEST(ThriftReader, SkipsAnything) {
  // A map, a double, a list of structs, a byte, a list of booleans.
  const auto bytes = bytes_of({0x1b, 1,    0x85, 1, 'k', 2, 0x17, 0, 0,    0,    0, 0, 0,    0, 0,
                               0x19, 0x2c, 0x15, 2, 0,   0, 0x13, 7, 0x19, 0x21, 1, 2, 0x19, 0, 0});
  ThriftReader reader(bytes);
  reader.skip(Type::structure);
  EXPECT_EQ(reader.position(), bytes.size());
}

TEST(ThriftReader, RefusesWhatIsDamaged) {
  const auto skip = [](std::vector<int> numbers) {
    const auto bytes = bytes_of(std::move(numbers));
    ThriftReader(bytes).skip(Type::structure);
  };
  EXPECT_THROW(skip({}), Error);
  EXPECT_THROW(skip({0x15}), Error);
  EXPECT_THROW(skip({0x18, 5, 'a'}), Error);
  EXPECT_THROW(skip({0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f}), Error);
  EXPECT_THROW(skip({0x1f, 0}), Error);
  EXPECT_THROW(skip({0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0}),
               Error);
  EXPECT_THROW(skip(std::vector<int>(100, 0x1c)), Error);
  const auto bytes = bytes_of({5});
  EXPECT_THROW(ThriftReader(bytes).integer(Type::binary), Error);
  EXPECT_THROW(ThriftReader(bytes).binary(Type::i32), Error);
  EXPECT_THROW(ThriftReader(bytes).list(Type::i32), Error);
  EXPECT_THROW(ThriftReader::boolean(Type::i32), Error);
}

}  // namespace thrift_reader_test
}  // namespace batchfs
