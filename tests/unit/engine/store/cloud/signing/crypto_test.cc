#include "engine/store/cloud/signing/crypto.h"

#include <memory>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "engine/base/error.h"

namespace batchfs {
namespace crypto_test {

TEST(Crypto, Sha256) {  // FIPS 180-4 examples
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Crypto, HmacSha256) {  // RFC 4231 cases 1, 2 and 6; and Python's hmac for an empty key
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'),
                            "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hex(hmac_sha256({}, "")),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(Crypto, Base64) {  // RFC 4648 section 10
  const std::pair<std::string, std::string> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"foobar", "Zm9vYmFy"},
                                                       {std::string("\xfb\xff\x00", 3), "+/8A"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  EXPECT_EQ(base64url("\xfb\xff\xfe"), "-__-");
  EXPECT_EQ(base64url("f"), "Zg");
  for (const char* wrong : {"Zg", "Zg=", "Z===", "=Zg=", "Zg==Zg==", "Zm9\n", "Zm9-"})
    EXPECT_THROW(from_base64(wrong), Error) << wrong;
}

TEST(Crypto, RsaSignatureVerifies) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_RSA_gen(2048), EVP_PKEY_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), BIO_free);
  ASSERT_EQ(
      PEM_write_bio_PKCS8PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr),
      1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  const std::string pem(text, static_cast<std::size_t>(size));

  const std::string data = "header.claims", signature = rsa_sha256(pem, data);
  EXPECT_EQ(signature.size(), 256U);
  const auto verifies = [&](const std::string& signed_text) {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                          EVP_MD_CTX_free);
    EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get());
    return EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                            signature.size(),
                            reinterpret_cast<const unsigned char*>(signed_text.data()),
                            signed_text.size()) == 1;
  };
  EXPECT_TRUE(verifies(data));
  EXPECT_FALSE(verifies("header.claimz"));
}

TEST(Crypto, AWrongKeyIsRefusedWithoutRepeatingIt) {
  for (const std::string pem :
       {"", "SECRET", "-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n"}) {
    try {
      rsa_sha256(pem, "data");
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_EQ(std::string(error.what()).find("SECRET"), std::string::npos);
    }
  }
}

}  // namespace crypto_test
}  // namespace batchfs
