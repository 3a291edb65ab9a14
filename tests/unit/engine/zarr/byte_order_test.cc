#include <cstring>

#include <gtest/gtest.h>

#include "engine/zarr/data_type.h"

namespace batchfs {
namespace byte_order_test {

std::string swapped(const DataType& type, std::string bytes) {
  swap_bytes(type, reinterpret_cast<std::byte*>(bytes.data()), bytes.size() / type.itemsize);
  return bytes;
}

TEST(ByteOrder, TurnsWordsAround) {
  EXPECT_EQ(swapped(make_type(Kind::signed_int, 2), "abcd"), "badc");
  EXPECT_EQ(swapped(float32(), "abcdefgh"), "dcbahgfe");
  EXPECT_EQ(swapped(datetime_ns(), "abcdefgh"), "hgfedcba");
  EXPECT_EQ(swapped(make_type(Kind::complex, 8), "abcdefgh"), "dcbahgfe");
  EXPECT_EQ(swapped(make_type(Kind::unicode, 8), "abcdefgh"), "dcbahgfe");
  EXPECT_EQ(swapped(make_type(Kind::bytes, 4), "abcd"), "abcd");
  EXPECT_EQ(swapped(make_type(Kind::unsigned_int, 1), "abcd"), "abcd");
}

TEST(ByteOrder, OfFieldsThatHaveTheOther) {
  const Json json =
      parse_json(R"([["a", ">i2"], ["b", "<i2"], ["c", [["d", ">u4"]]], ["e", ">i2", [2]]])", "");
  const DataType type = parse_v2_type(JsonRef(json, ""), "");
  EXPECT_EQ(swapped(type, "abcdefghijkl"), "bacdhgfejilk");
}

TEST(ByteOrder, IsSetForAllFields) {
  const Json json =
      parse_json(R"([["a", "<i2"], ["b", "|u1"], ["c", [["d", "<u4"], ["e", "<U1"]]]])", "");
  DataType type = parse_v2_type(JsonRef(json, ""), "");
  set_byte_order(type, true);
  EXPECT_EQ(v2_descr(type).dump(), R"([["a",">i2"],["b","|u1"],["c",[["d",">u4"],["e",">U1"]]]])");
  EXPECT_FALSE(type.big_endian);
  set_byte_order(type, false);
  EXPECT_EQ(v2_descr(type), json);
}

}  // namespace byte_order_test
}  // namespace batchfs
