#include "engine/store/references/snappy.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace snappy_test {

std::string decoded(const std::string& in, std::size_t size) {
  std::string out(size, '?');
  references::decode_snappy(std::as_bytes(std::span(in)), std::as_writable_bytes(std::span(out)));
  return out;
}

TEST(Snappy, DecodesLiteralsAndCopies) {
  EXPECT_EQ(decoded(std::string("\x00", 1), 0), "");
  EXPECT_EQ(decoded("\x05\x10hello", 5), "hello");
  EXPECT_EQ(decoded("\x0a\x04"
                    "ab\x11\x02",
                    10 - 0),
            "ababababab");
  EXPECT_EQ(decoded(std::string("\x06\x04"
                                "xy\x0e\x02\x00",
                                7),
                    6),
            "xyxyxy");
  EXPECT_EQ(decoded(std::string("\x06\x04"
                                "xy\x0f\x02\x00\x00\x00",
                                9),
                    6),
            "xyxyxy");
  const std::string text(70, 'z');
  EXPECT_EQ(decoded("\x46\xf0\x45" + text, 70), text);
}

TEST(Snappy, RefusesWhatIsDamaged) {
  for (const std::string& wrong :
       {std::string(), std::string("\x05\x10hell"), std::string("\x05\x10hello!"),
        std::string("\x05\x0chell"), std::string("\x06\x10hello"), std::string("\x05\x05\x01hell"),
        std::string("\xff\xff\xff\xff\xff\x01"),
        std::string("\x05\x00"
                    "a\x05\x00",
                    5)})
    EXPECT_THROW(decoded(wrong, 5), Error);
}

TEST(Snappy, RefusesWhatIsCutShortOrOfAnotherSize) {
  const std::string whole = std::string("\x46\xf0\x45") + std::string(70, 'z');
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(decoded(whole.substr(0, size), 70), Error) << size;
  for (const std::size_t size : {0, 69, 71, 1000}) EXPECT_THROW(decoded(whole, size), Error);
}

}  // namespace snappy_test
}  // namespace batchfs
