#include "engine/store/cloud/signing/crypto.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#include "engine/base/error.h"

namespace batchfs {

namespace {

const unsigned char* bytes_of(std::string_view data) {
  return reinterpret_cast<const unsigned char*>(data.data());
}

Error crypto_failure(const char* what) {
  return Error(ErrorCode::internal, std::string("libcrypto could not compute ") + what);
}

}  // namespace

std::string sha256(std::string_view data) {
  std::string digest(32, '\0');
  unsigned int size = 0;
  if (EVP_Digest(data.data(), data.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
                 EVP_sha256(), nullptr) != 1)
    throw crypto_failure("SHA-256");
  return digest;
}

std::string hmac_sha256(std::string_view key, std::string_view data) {
  std::string digest(32, '\0');
  unsigned int size = 0;
  // A null key means "the last one" to HMAC(); an empty std::string_view may hold a null pointer.
  const char* key_bytes = key.empty() ? "" : key.data();
  if (HMAC(EVP_sha256(), key_bytes, static_cast<int>(key.size()), bytes_of(data), data.size(),
           reinterpret_cast<unsigned char*>(digest.data()), &size) == nullptr)
    throw crypto_failure("HMAC-SHA-256");
  return digest;
}

std::string rsa_sha256(std::string_view private_key_pem, std::string_view data) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> input(
      BIO_new_mem_buf(private_key_pem.data(), static_cast<int>(private_key_pem.size())), BIO_free);
  if (!input) throw crypto_failure("a signature");
  // The callback keeps OpenSSL from asking for a passphrase on the terminal.
  const auto no_passphrase = [](char*, int, int, void*) { return 0; };
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(input.get(), nullptr, no_passphrase, nullptr), EVP_PKEY_free);
  if (!key || EVP_PKEY_base_id(key.get()) != EVP_PKEY_RSA)
    throw Error(ErrorCode::invalid_argument, "the private key is not an RSA key in PEM form");
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  std::size_t size = 0;
  if (!context ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, bytes_of(data), data.size()) != 1)
    throw crypto_failure("a signature");
  std::string signature(size, '\0');
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     bytes_of(data), data.size()) != 1)
    throw crypto_failure("a signature");
  signature.resize(size);
  return signature;
}

std::string hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // libcrypto ends it with NUL
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes_of(bytes),
                  static_cast<int>(bytes.size()));
  text.pop_back();
  return text;
}

std::string base64url(std::string_view bytes) {
  std::string text = base64(bytes);
  while (!text.empty() && text.back() == '=') text.pop_back();
  for (char& c : text)
    if (c == '+')
      c = '-';
    else if (c == '/')
      c = '_';
  return text;
}

std::string from_base64(std::string_view text) {
  // libcrypto skips white space at both ends, and takes '=' for 'A'.
  const auto is_digit = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '/';  // in the C locale
  };
  std::size_t digits = text.size();
  while (digits > 0 && text.size() - digits < 2 && text[digits - 1] == '=') --digits;
  if (text.size() % 4 != 0 || !std::all_of(text.begin(), text.begin() + digits, is_digit))
    throw Error(ErrorCode::invalid_argument, "not base64");
  std::string bytes(text.size() / 4 * 3, '\0');
  if (EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()), bytes_of(text),
                      static_cast<int>(text.size())) != static_cast<int>(bytes.size()))
    throw Error(ErrorCode::invalid_argument, "not base64");
  bytes.resize(bytes.size() - (text.size() - digits));
  return bytes;
}

}  // namespace batchfs
