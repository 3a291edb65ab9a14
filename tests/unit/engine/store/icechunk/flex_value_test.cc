#include "engine/store/icechunk/flex_value.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/store/icechunk/icechunk_files.h"

namespace batchfs {
namespace flex_value_test {

using icechunk::FlexValue;

TEST(FlexValue, ReadsAMap) {
  // One map with one text, byte by byte: key at 0, text at 3, keys vector at 6, values at 10.
  std::string out("k\0\1v\0\1", 6);
  out += '\6';          // 6: key 0 lies 6 before
  out += '\1';          // 7: offset to the keys: 7 - 1 = 6
  out += '\1';          // 8: width of the keys
  out += '\1';          // 9: number of values
  out += '\7';          // 10: value 0 lies 7 before: 3
  out += char{5 << 2};  // 11: its type, a text
  out += '\2';          // 12: the root lies 2 before: 10
  out += char{9 << 2};  // 13: a map
  out += '\1';          // 14: the width of the root
  const FlexValue root = FlexValue::root(bytes_of(out));
  ASSERT_TRUE(root.is_map());
  ASSERT_EQ(root.members().size(), 1u);
  EXPECT_EQ(root.members()[0].first, "k");
  EXPECT_EQ(root.find("k")->text(), "v");
  EXPECT_FALSE(root.find("x"));
  EXPECT_FALSE(root.text());
  for (std::size_t i = 0; i < out.size(); ++i)
    for (int value = 0; value < 256; ++value) {
      std::string changed = out;
      changed[i] = static_cast<char>(value);
      try {
        const FlexValue other = FlexValue::root(bytes_of(changed));
        for (const auto& [key, member] : other.members()) member.text();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::corrupt);
      }
    }
  for (std::size_t size = 0; size < 3; ++size)
    EXPECT_THROW(FlexValue::root(bytes_of(out).first(size)), Error);
}

}  // namespace flex_value_test
}  // namespace batchfs
