#include "engine/store/fingerprint.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace fingerprint_test {

std::string of(std::initializer_list<std::string_view> texts) {
  Fingerprint print;
  for (const std::string_view text : texts) print.add(text);
  return print.text();
}

TEST(Fingerprint, IsAChainOfSha256) {
  // h = hashlib.sha256; h(h(b"abc").digest()).hexdigest()[:32]
  EXPECT_EQ(fingerprint("abc"), "4f8b42c22dd3729b519ba6f68d2da7cc");
  // h(h(h(b"abc").digest()).digest() + h(b"d").digest()).hexdigest()[:32]
  EXPECT_EQ(of({"abc", "d"}), "cd553a3e65ad5937667cb33161d505c1");
  EXPECT_EQ(of({}), std::string(32, '0'));
}

TEST(Fingerprint, TextsAreToldApart) {
  EXPECT_NE(of({"ab", "c"}), of({"a", "bc"}));
  EXPECT_NE(of({"", "a"}), of({"a", ""}));
  EXPECT_NE(of({""}), of({}));
  EXPECT_NE(of({"a"}), of({"a", ""}));
  EXPECT_EQ(of({"a", "b"}), of({"a", "b"}));
}

}  // namespace fingerprint_test
}  // namespace batchfs
