#pragma once
// Digests, keyed digests and signatures that object stores ask for, over OpenSSL's libcrypto.

#include <string>
#include <string_view>

namespace batchfs {

/// The digest's 32 bytes.
std::string sha256(std::string_view data);
std::string hmac_sha256(std::string_view key, std::string_view data);

/// RSASSA-PKCS1-v1_5 with SHA-256 (the RS256 of JSON Web Tokens). `private_key_pem` is PKCS#8 or
/// PKCS#1 without a passphrase. Throws invalid_argument when it is not an RSA private key; never
/// repeats the key.
std::string rsa_sha256(std::string_view private_key_pem, std::string_view data);

/// Lower-case hexadecimal digits.
std::string hex(std::string_view bytes);
/// RFC 4648 section 4, with padding.
std::string base64(std::string_view bytes);
/// RFC 4648 section 5 without padding, as JSON Web Tokens use it.
std::string base64url(std::string_view bytes);
/// Decodes base64 with its padding. Throws invalid_argument.
std::string from_base64(std::string_view text);

}  // namespace batchfs
