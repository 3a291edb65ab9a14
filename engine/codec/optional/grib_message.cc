#include "engine/codec/optional/grib_message.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "engine/base/error.h"

namespace batchfs {

namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kBegin = "GRIB", kEnd = "7777";
constexpr std::uint64_t kWords = 64;  // that a decoder reads at once, and then some

Error damaged(const std::string& why) {
  return Error(ErrorCode::corrupt, "the GRIB message is damaged: " + why);
}

/// A big-endian number. Throws where it lies outside.
std::uint64_t number(Bytes bytes, std::size_t at, std::size_t size) {
  if (at + size > bytes.size()) throw damaged("a section is too short");
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
  return value;
}

bool has_text(Bytes bytes, std::size_t at, std::string_view text) {
  return at + text.size() <= bytes.size() &&
         std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

/// The packing of the data section's values.
struct Packing {
  std::uint64_t values = 0;
  std::uint64_t form = 0;  // "data representation template number"
  std::uint64_t bits = 0;  // a value; of IEEE 754, the precision's number
};

void check_image(std::uint64_t width, std::uint64_t height, const Packing& packing) {
  if (width == 0 || height == 0 || width > packing.values || height > packing.values ||
      width * height != packing.values)
    throw damaged(fmt::format("an image of {} x {} for {} values", width, height, packing.values));
}

void check_jpeg2000(Bytes image, const Packing& packing) {
  constexpr std::uint64_t kStartAndSize = 0xff4fff51;  // markers SOC and SIZ
  if (number(image, 0, 4) != kStartAndSize) throw damaged("its JPEG 2000 data begin otherwise");
  const std::uint64_t right = number(image, 8, 4), bottom = number(image, 12, 4),
                      left = number(image, 16, 4), top = number(image, 20, 4);
  if (left >= right || top >= bottom) throw damaged("its image has no size");
  check_image(right - left, bottom - top, packing);
  const std::uint64_t tile_width = number(image, 24, 4), tile_height = number(image, 28, 4);
  if (tile_width == 0 || tile_height == 0) throw damaged("its image has tiles of no size");
  if (number(image, 40, 2) != 1) throw damaged("its image has not one component");
}

void check_png(Bytes image, const Packing& packing) {
  if (!has_text(image, 0, "\x89PNG\r\n\x1a\n") || !has_text(image, 12, "IHDR"))
    throw damaged("its PNG data begin otherwise");
  check_image(number(image, 16, 4), number(image, 20, 4), packing);
}

/// Section 3.
void check_grid(Bytes section, std::uint64_t points) {
  if (number(section, 6, 4) != points)
    throw damaged(fmt::format("it has {} points, the chunk has {}", number(section, 6, 4), points));
  const std::uint64_t form = number(section, 12, 2);
  if (form >= 50 && form < 60)
    throw Error(ErrorCode::not_supported, "GRIB messages of spherical harmonics are not supported");
  constexpr std::uint64_t kGaussian = 40, kUnstructured = 100, kNone = 0xffffffff;
  if (form >= kUnstructured) return;
  // ecCodes takes memory by these.
  const auto fits = [&](std::size_t at) {
    const std::uint64_t count = number(section, at, 4);
    return count == kNone || count <= points;
  };
  if (!fits(30) || !fits(34) || (form / 10 * 10 == kGaussian && !fits(67)))
    throw damaged("its grid has more rows or columns than points");
}

/// Adaptive entropy coding (CCSDS 121.0-B): libaec writes beyond its memory for other numbers.
void check_ccsds(Bytes section, const Packing& packing) {
  constexpr std::uint64_t kMaxBits = 32, kMaxInterval = 4096;
  const std::uint64_t block = number(section, 22, 1), interval = number(section, 23, 2);
  if (packing.bits > kMaxBits || (block != 8 && block != 16 && block != 32 && block != 64) ||
      interval == 0 || interval > kMaxInterval)
    throw damaged(
        fmt::format("CCSDS blocks of {} x {} values of {} bits", interval, block, packing.bits));
}

/// Section 5. Adds to the padding after the message.
Packing parse_packing(Bytes section, std::uint64_t points, GribMessage& message) {
  constexpr std::uint64_t kIeee = 4, kCcsds = 42;
  Packing packing{number(section, 5, 4), number(section, 9, 2), 0};
  packing.bits = number(section, packing.form == kIeee ? 11 : 19, 1);
  if (packing.values > points)
    throw damaged(fmt::format("{} values for {} points", packing.values, points));
  switch (packing.form) {
    case 2:  // complex
    case 3:  // complex with differences
      if (number(section, 31, 4) > points)
        throw damaged(fmt::format("{} groups for {} points", number(section, 31, 4), points));
      message.padding = std::max(message.padding, 16 * points + kWords);
      [[fallthrough]];
    case 0:      // simple
    case 40:     // JPEG 2000
    case 41:     // PNG
    case 40000:  // both before they were standardized
    case 40010:
      if (packing.bits > 64) throw damaged(fmt::format("values of {} bits", packing.bits));
      return packing;
    case kCcsds:
      check_ccsds(section, packing);
      return packing;
    case kIeee:
      return packing;
    default:
      throw Error(ErrorCode::not_supported,
                  fmt::format("GRIB data of the representation template {} are not supported",
                              packing.form));
  }
}

void check_bitmap(Bytes section, std::uint64_t points) {
  const std::uint64_t indicator = number(section, 5, 1);
  if (indicator == 0 && section.size() - 6 < (points + 7) / 8)
    throw damaged("its bitmap is too short");
  if (indicator != 0 && indicator < 254)
    throw Error(ErrorCode::not_supported,
                "GRIB messages with a bitmap that is defined elsewhere are not supported");
}

void check_data(Bytes section, const Packing& packing) {
  const Bytes data = section.subspan(5);
  std::uint64_t bits = 0;
  if (packing.form == 0)
    bits = packing.bits;
  else if (packing.form == 4)
    bits = packing.bits == 1 ? 32 : packing.bits == 2 ? 64 : 128;  // it is the precision here
  if (packing.values * bits > 8 * data.size()) throw damaged("its values are cut short");
  // Equal values take no image.
  if (packing.bits == 0 || data.empty()) return;
  if (packing.form == 40 || packing.form == 40000) check_jpeg2000(data, packing);
  if (packing.form == 41 || packing.form == 40010) check_png(data, packing);
}

GribMessage check_edition2(Bytes bytes, std::uint64_t points) {
  GribMessage message{2, kWords};
  if (number(bytes, 8, 8) != bytes.size())
    throw damaged(fmt::format("it says that it has {} bytes, the chunk has {}", number(bytes, 8, 8),
                              bytes.size()));
  Packing packing;
  bool has_grid = false, has_data = false;
  std::size_t at = 16;
  const std::size_t end = bytes.size() - kEnd.size();
  while (at < end) {
    const std::uint64_t length = number(bytes, at, 4);
    if (length < 5 || length > end - at) throw damaged("a section reaches beyond its end");
    const Bytes section = bytes.subspan(at, length);
    switch (std::to_integer<int>(section[4])) {
      case 3:
        check_grid(section, points);
        has_grid = true;
        break;
      case 5:
        packing = parse_packing(section, points, message);
        break;
      case 6:
        check_bitmap(section, points);
        break;
      case 7:
        check_data(section, packing);
        has_data = true;
        break;
      case 1:
      case 2:
      case 4:
        break;
      default:
        throw damaged("a section of an unknown number");
    }
    at += length;
  }
  if (!has_grid || !has_data) throw damaged("it has no grid or no data");
  return message;
}

/// Edition 1 contains lengths only; the number of points follows from the kind of grid, which
/// ecCodes knows.
GribMessage check_edition1(Bytes bytes, std::uint64_t points) {
  constexpr std::uint64_t kLarge = 0x800000, kUnit = 120;  // how ECMWF writes more than 8 MB
  const std::uint64_t told = number(bytes, 4, 3), size = bytes.size();
  const bool is_large = (told & kLarge) != 0 && size >= kLarge;
  const std::uint64_t most = is_large ? (told & (kLarge - 1)) * kUnit : told;
  if (is_large ? size > most || most - size >= kUnit : size != most)
    throw damaged(fmt::format("it says that it has {} bytes, the chunk has {}", most, size));
  std::size_t at = 8;
  const std::size_t end = bytes.size() - kEnd.size();
  const auto pass = [&](std::uint64_t least) {
    const std::uint64_t length = number(bytes, at, 3);
    if (length < least || length > end - at) throw damaged("a section reaches beyond its end");
    at += length;
    return bytes.subspan(at - length, length);
  };
  const std::uint64_t flags = number(pass(28), 7, 1);
  if ((flags & 0x80) != 0) pass(10);  // grid description
  if ((flags & 0x40) != 0) pass(6);   // bitmap
  if (at + 11 > end) throw damaged("it has no data");
  const Bytes data = bytes.subspan(at, end - at);
  if (!is_large && number(data, 0, 3) != data.size())
    throw damaged("its data section has another length");
  constexpr std::uint64_t kSpectral = 0x80, kSecondOrder = 0x40;
  const std::uint64_t kind = number(data, 3, 1);
  if ((kind & kSpectral) != 0)
    throw Error(ErrorCode::not_supported, "GRIB messages of spherical harmonics are not supported");
  // ecCodes trusts every number in them, and writes where they point.
  if ((kind & kSecondOrder) != 0)
    throw Error(
        ErrorCode::not_supported,
        "GRIB messages of edition 1 with second-order packing are not supported; write them "
        "again with grib_set -r -s packingType=grid_simple");
  return {1, 16 * points + kWords};
}

}  // namespace

GribMessage check_grib_message(Bytes bytes, std::uint64_t points) {
  if (bytes.size() < 24 || !has_text(bytes, 0, kBegin))
    throw damaged("it does not begin with GRIB");
  if (!has_text(bytes, bytes.size() - kEnd.size(), kEnd)) throw damaged("it does not end in 7777");
  const std::uint64_t edition = number(bytes, 7, 1);
  if (edition == 2) return check_edition2(bytes, points);
  if (edition == 1) return check_edition1(bytes, points);
  throw Error(ErrorCode::not_supported, fmt::format("GRIB edition {} is not supported", edition));
}

}  // namespace batchfs
