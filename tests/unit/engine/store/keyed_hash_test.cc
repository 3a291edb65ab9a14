#include "engine/store/keyed_hash.h"

#include <cstring>
#include <memory>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>

namespace batchfs {
namespace keyed_hash_test {

KeyedHash::Value value_of(const KeyedHash::Key& key, std::string_view text) {
  KeyedHash hash(key);
  hash.add(text);
  return hash.value();
}

/// OpenSSL's SipHash-2-4.
KeyedHash::Value oracle(const KeyedHash::Key& key, const std::string& text) {
  const std::unique_ptr<EVP_MAC, void (*)(EVP_MAC*)> mac(EVP_MAC_fetch(nullptr, "SIPHASH", nullptr),
                                                         EVP_MAC_free);
  const std::unique_ptr<EVP_MAC_CTX, void (*)(EVP_MAC_CTX*)> context(EVP_MAC_CTX_new(mac.get()),
                                                                     EVP_MAC_CTX_free);
  std::size_t size = sizeof(KeyedHash::Value);
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
                                   OSSL_PARAM_construct_end()};
  KeyedHash::Value value{};
  const bool done =
      EVP_MAC_init(context.get(), reinterpret_cast<const unsigned char*>(key.data()), sizeof key,
                   parameters) == 1 &&
      EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(text.data()),
                     text.size()) == 1 &&
      EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(value.data()), &size,
                    sizeof value) == 1;
  EXPECT_TRUE(done);
  return value;
}

TEST(KeyedHash, IsSipHash) {
  std::mt19937_64 random(1);
  for (std::size_t length = 0; length < 300; ++length) {
    const KeyedHash::Key key{random(), random()};
    std::string text(length, '\0');
    for (char& c : text) c = static_cast<char>(random());
    EXPECT_EQ(value_of(key, text), oracle(key, text)) << length;
  }
}

TEST(KeyedHash, HowTheBytesAreCutIntoPiecesDoesNotMatter) {
  const KeyedHash::Key key{1, 2};
  const std::string text = "The quick brown fox jumps over the lazy dog";
  const KeyedHash::Value whole = value_of(key, text);
  for (std::size_t first = 0; first <= text.size(); ++first)
    for (std::size_t second = first; second <= text.size(); second += 3) {
      KeyedHash hash(key);
      hash.add(std::string_view(text).substr(0, first));
      hash.add(std::string_view(text).substr(first, second - first));
      hash.add(std::string_view(text).substr(second));
      EXPECT_EQ(hash.value(), whole) << first << " " << second;
    }
}

TEST(KeyedHash, ANumberIsItsEightBytes) {
  const KeyedHash::Key key{3, 4};
  KeyedHash hash(key);
  hash.add(std::string_view("abc"));
  hash.add(std::uint64_t{0x0807060504030201});
  EXPECT_EQ(hash.value(), value_of(key, "abc\1\2\3\4\5\6\7\10"));
}

}  // namespace keyed_hash_test
}  // namespace batchfs
