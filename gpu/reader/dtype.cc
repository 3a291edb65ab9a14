#include "gpu/reader/dtype.h"

#include <charconv>
#include <string_view>

#include "engine/base/error.h"

namespace batchfs::reader {

namespace {

// Source: dlpack.h, DLDataTypeCode.
constexpr int kDlInt = 0, kDlUInt = 1, kDlFloat = 2, kDlBfloat = 4, kDlComplex = 5, kDlBool = 6;

[[noreturn]] void unknown(const std::string& name) {
  throw Error(ErrorCode::not_supported,
              "there is no data type '" + name + "' here; a newer reader may know it");
}

std::uint32_t number(std::string_view text, const std::string& name) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > (1u << 24)) unknown(name);
  return value;
}

}  // namespace

Dtype parse_dtype(const std::string& name) {
  const std::string_view text = name;
  Dtype type{.name = name};
  const auto plain = [&](std::string_view prefix, char letter, int code) {
    if (!text.starts_with(prefix)) return false;
    const std::uint32_t bits = number(text.substr(prefix.size()), name);
    if (bits < 8 || bits > 128 || (bits & (bits - 1)) != 0) unknown(name);
    type.itemsize = bits / 8;
    type.typestr = (bits == 8 ? "|" : "<") + std::string(1, letter) + std::to_string(bits / 8);
    type.dlpack_code = code;
    type.dlpack_bits = static_cast<int>(bits);
    return true;
  };
  if (plain("uint", 'u', kDlUInt) || plain("int", 'i', kDlInt) || plain("float", 'f', kDlFloat) ||
      plain("complex", 'c', kDlComplex))
    return type;
  if (text == "bool") {
    type.typestr = "|b1";
    type.itemsize = 1;
    type.dlpack_code = kDlBool;
    type.dlpack_bits = 8;
    return type;
  }
  if (text == "bfloat16") {
    type.typestr = "<V2";  // numpy has no name for it: ml_dtypes has
    type.itemsize = 2;
    type.dlpack_code = kDlBfloat;
    type.dlpack_bits = 16;
    return type;
  }
  for (const auto& [prefix, letter] :
       {std::pair("datetime64", "<M8"), std::pair("timedelta64", "<m8")})
    if (text.starts_with(prefix)) {
      type.typestr = letter + name.substr(std::string_view(prefix).size());
      type.itemsize = 8;
      return type;
    }
  // Typestrs: "<U7", "|S3", "|V8".
  if (text.size() >= 3 && (text[0] == '<' || text[0] == '|') &&
      (text[1] == 'U' || text[1] == 'S' || text[1] == 'V')) {
    type.typestr = name;
    type.itemsize = number(text.substr(2), name) * (text[1] == 'U' ? 4 : 1);
    return type;
  }
  unknown(name);
}

}  // namespace batchfs::reader
