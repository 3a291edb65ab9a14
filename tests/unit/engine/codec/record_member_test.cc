#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

namespace batchfs {
namespace record_member_test {

constexpr const char* kRecord =
    R"({"member": "y", "dtype": [["x", "<i2"], ["y", ">f4"], ["z", "|u1", [2]]]})";

std::string configuration(const char* member) {
  std::string json = kRecord;
  json.replace(json.find("\"y\""), 3, std::string("\"") + member + "\"");
  return json;
}

TEST(RecordMember, TakesOneFieldOfEachRecord) {
  ChunkLayout layout{{2}, make_type(Kind::floating, 4), {}, true};
  const auto codec = make_codec("record_member", configuration("y"), layout);
  EXPECT_EQ(decode(*codec,
                   hex("0100aabbccdd0506"
                       "0200112233440708"),
                   8),
            hex("aabbccdd11223344"));
  EXPECT_EQ(codec->encoded_size(8), 16u);
  EXPECT_EQ(layout.type.kind, Kind::structured);
  EXPECT_EQ(layout.type.itemsize, 8u);
  // A field that is an array is as many bytes of each.
  const auto pair = make_codec("record_member", configuration("z"));
  EXPECT_EQ(decode(*pair,
                   hex("0100aabbccdd0506"
                       "0200112233440708"),
                   4),
            hex("05060708"));
}

TEST(RecordMember, RefusesWhatDoesNotFit) {
  const auto codec = make_codec("record_member", configuration("y"));
  EXPECT_TRUE(fails(*codec, Bytes(15), 8));
  EXPECT_TRUE(fails(*codec, Bytes(16), 7));
  EXPECT_EQ(refusal("record_member", configuration("w")),
            "record_member.member: the records have no field 'w'; there are x, y, z");
  EXPECT_THAT(refusal("record_member", R"({"member": "x", "dtype": "<i2"})"),
              testing::HasSubstr("no field 'x'"));
  EXPECT_EQ(refusal("record_member", R"({"member": "x"})"),
            "record_member: the key 'dtype' is missing");
}

}  // namespace record_member_test
}  // namespace batchfs
