#include "engine/store/icechunk/object_id.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace object_id_test {

using icechunk::base32;
using icechunk::ObjectId;
using icechunk::parse_object_id;

TEST(ObjectId, HasTheTextThatIcechunkGivesIt) {
  ObjectId counting{};
  for (std::size_t i = 0; i < counting.size(); ++i) counting[i] = static_cast<std::byte>(i);
  EXPECT_EQ(base32(counting), "000G40R40M30E209185G");
  const unsigned char first[] = {0x0b, 0x1c, 0xc8, 0xd6, 0x78, 0x75,
                                 0x80, 0xf0, 0xe3, 0x3a, 0x65, 0x34};
  ObjectId id;
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::byte>(first[i]);
  EXPECT_EQ(base32(id), "1CECHNKREP0F1RSTCMT0");
  EXPECT_EQ(parse_object_id("1CECHNKREP0F1RSTCMT0"), id);
  EXPECT_EQ(parse_object_id("1cechnkrep0f1rstcmt0"), id);
  EXPECT_EQ(base32(std::span(counting).first(8)), "000G40R40M30E");
}

TEST(ObjectId, HasOneTextOnly) {
  EXPECT_FALSE(parse_object_id(""));
  EXPECT_FALSE(parse_object_id("1CECHNKREP0F1RSTCMT"));
  EXPECT_FALSE(parse_object_id("1CECHNKREP0F1RSTCMT00"));
  EXPECT_FALSE(parse_object_id("1CECHNKREP0F1RSTCMT1"));  // bits past the last byte
  EXPECT_FALSE(parse_object_id("1CECHNKREP0F1RSTCMU0"));  // no U
  EXPECT_FALSE(parse_object_id("../../../../../../.."));
}

}  // namespace object_id_test
}  // namespace batchfs
