#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python, of n bytes 0, 1, 2, ...:
// numcodecs.JenkinsLookup3(initval=i).encode(np.frombuffer(bytes(range(n)), "u1"))[-4:].hex()

namespace batchfs {
namespace jenkins_lookup3_test {

Bytes first(std::size_t size) {
  Bytes bytes;
  for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(i));
  return bytes;
}

Bytes with_sum(std::size_t size, std::string_view sum) {
  Bytes bytes = first(size);
  const Bytes digits = hex(sum);
  bytes.insert(bytes.end(), digits.begin(), digits.end());
  return bytes;
}

TEST(JenkinsLookup3, ChecksAndDropsTheSum) {
  struct Vector {
    std::size_t size;
    const char *sum, *sum_of_7;
  };
  for (const Vector& vector :
       {Vector{1, "4b41a98b", "bf84c158"}, Vector{4, "421dcfe4", "b0db0148"},
        Vector{11, "7a81a62c", "baed8c85"}, Vector{12, "93a54a5e", "d0affb72"},
        Vector{13, "16689dbc", "f2a34362"}, Vector{24, "53dd0a9c", "667cc16b"},
        Vector{25, "4422883a", "f898a5bf"}, Vector{100, "0b4c2b68", "8bcd67c5"}}) {
    SCOPED_TRACE(vector.size);
    const auto codec = make_codec("jenkins_lookup3");
    const Bytes stored = with_sum(vector.size, vector.sum);
    EXPECT_EQ(expect_decodes(*codec, stored, first(vector.size)), 0);
    EXPECT_EQ(codec->encoded_size(vector.size), stored.size());
    const auto of_7 = make_codec("jenkins_lookup3", R"({"initval": 7, "prefix": null})");
    EXPECT_EQ(decode(*of_7, with_sum(vector.size, vector.sum_of_7), vector.size),
              first(vector.size));
    EXPECT_TRUE(fails(*of_7, stored, vector.size));
  }
  // The checksum of no bytes is the initial value: H5_checksum_lookup3 returns c.
  EXPECT_EQ(decode(*make_codec("jenkins_lookup3"), hex("efbeadde"), 0).size(), 0u);
}

TEST(JenkinsLookup3, TheConfigurationIsChecked) {
  EXPECT_THAT(refusal("jenkins_lookup3", R"({"initval": -1})"), testing::HasSubstr("initval"));
  EXPECT_THAT(refusal("jenkins_lookup3", R"({"prefix": "abc"})"),
              testing::HasSubstr("a prefix, which JSON cannot hold, is not supported"));
}

}  // namespace jenkins_lookup3_test
}  // namespace batchfs
