#include "engine/codec/optional/grib_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace grib_message_test {

using testing::HasSubstr;

/// Big-endian, with `size` bytes.
std::string number(std::uint64_t value, int size) {
  std::string bytes;
  for (int i = size; i-- > 0;) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string section(int kind, const std::string& rest) {
  return number(rest.size() + 5, 4) + number(static_cast<std::uint64_t>(kind), 1) + rest;
}

/// WMO Manual on Codes, FM 92: a message of edition 2 of 12 points, each part of which a test may
/// change.
struct Message {
  std::uint64_t points = 12, columns = 4, rows = 3, values = 12, form = 0, bits = 8, groups = 2;
  std::uint64_t grid = 0, block = 32, interval = 128;
  std::string bitmap = number(255, 1), data = std::string(12, '\1'), more;

  std::string text() const {
    const std::string grid_section =
        section(3, number(0, 1) + number(points, 4) + number(0, 2) + number(grid, 2) +
                       std::string(16, '\0') + number(columns, 4) + number(rows, 4) +
                       std::string(34, '\0'));
    const std::string packing =
        section(5, number(values, 4) + number(form, 2) + number(form == 4 ? bits : 0, 1) +
                       std::string(7, '\0') + number(bits, 1) + std::string(2, '\0') +
                       number(block, 1) + number(interval, 2) + std::string(6, '\0') +
                       number(groups, 4) + std::string(14, '\0'));
    const std::string body = section(1, std::string(16, '\0')) + grid_section + packing +
                             section(6, bitmap) + section(7, data) + more + "7777";
    return "GRIB" + number(0, 3) + number(2, 1) + number(body.size() + 16, 8) + body;
  }
};

std::string refusal_of(const std::string& text, std::uint64_t points = 12) {
  try {
    check_grib_message(std::as_bytes(std::span(text)), points);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::string refusal(const Message& message, std::uint64_t points = 12) {
  return refusal_of(message.text(), points);
}

std::uint64_t padding(const Message& message) {
  const std::string text = message.text();
  const GribMessage checked = check_grib_message(std::as_bytes(std::span(text)), 12);
  EXPECT_EQ(checked.edition, 2);
  return checked.padding;
}

TEST(GribMessage, OfEachPacking) {
  EXPECT_EQ(padding({}), 64u);
  EXPECT_EQ(padding({.form = 2}), 16u * 12 + 64);
  EXPECT_EQ(padding({.form = 3}), 16u * 12 + 64);
  EXPECT_EQ(padding({.form = 42}), 64u);
  EXPECT_EQ(padding({.form = 4, .bits = 1, .data = std::string(48, '\1')}), 64u);
  EXPECT_EQ(padding({.values = 0, .bits = 0, .data = ""}), 64u);
  EXPECT_EQ(padding({.values = 5, .bitmap = number(0, 1) + "ab", .data = "12345"}), 64u);
}

TEST(GribMessage, HasTheChunksPoints) {
  EXPECT_THAT(refusal(Message{}, 13), HasSubstr("it has 12 points, the chunk has 13"));
  EXPECT_THAT(refusal({.columns = 13}), HasSubstr("more rows or columns than points"));
  EXPECT_THAT(refusal({.rows = 0x7fffffff}), HasSubstr("more rows or columns than points"));
  EXPECT_EQ(refusal({.columns = 0xffffffff}), "nothing was thrown");  // rows of various lengths
  EXPECT_THAT(refusal({.grid = 50}), HasSubstr("spherical harmonics are not supported"));
  EXPECT_THAT(refusal({.values = 13}), HasSubstr("13 values for 12 points"));
  EXPECT_THAT(refusal({.form = 3, .groups = 13}), HasSubstr("13 groups for 12 points"));
}

TEST(GribMessage, HoldsWhatItSays) {
  EXPECT_THAT(refusal({.bits = 9}), HasSubstr("its values are cut short"));
  EXPECT_THAT(refusal({.bits = 65}), HasSubstr("values of 65 bits"));
  EXPECT_THAT(refusal({.form = 4, .bits = 2}), HasSubstr("its values are cut short"));
  EXPECT_THAT(refusal({.bitmap = number(0, 1) + "a"}), HasSubstr("its bitmap is too short"));
  EXPECT_THAT(refusal({.bitmap = number(1, 1)}), HasSubstr("defined elsewhere"));
  EXPECT_THAT(refusal({.form = 51}), HasSubstr("template 51 are not supported"));
  for (const Message& message :
       {Message{.form = 42, .block = 0}, Message{.form = 42, .block = 33},
        Message{.form = 42, .interval = 0}, Message{.form = 42, .interval = 4097},
        Message{.form = 42, .bits = 33}})
    EXPECT_THAT(refusal(message), HasSubstr("CCSDS blocks of"));
  EXPECT_THAT(refusal({.more = section(9, "")}), HasSubstr("an unknown number"));
  EXPECT_THAT(refusal({.more = number(4, 4) + number(1, 1)}), HasSubstr("beyond its end"));
  EXPECT_THAT(refusal({.more = number(100, 4) + number(1, 1)}), HasSubstr("beyond its end"));
  EXPECT_THAT(refusal({.more = "abc"}), HasSubstr("beyond its end"));
}

TEST(GribMessage, ImagesHaveItsSize) {
  const auto jpeg = [](std::uint64_t width, std::uint64_t height, std::uint64_t tile = 4,
                       std::uint64_t components = 1) {
    return number(0xff4fff51, 4) + number(41, 2) + number(0, 2) + number(width, 4) +
           number(height, 4) + number(0, 8) + number(tile, 4) + number(tile, 4) + number(0, 8) +
           number(components, 2) + std::string(20, '\0');
  };
  EXPECT_EQ(refusal({.form = 40, .data = jpeg(4, 3)}), "nothing was thrown");
  EXPECT_THAT(refusal({.form = 40, .data = jpeg(65536, 65536)}),
              HasSubstr("an image of 65536 x 65536 for 12 values"));
  EXPECT_THAT(refusal({.form = 40, .data = jpeg(0, 3)}), HasSubstr("its image has no size"));
  EXPECT_THAT(refusal({.form = 40, .data = jpeg(4, 3, 0)}), HasSubstr("tiles of no size"));
  EXPECT_THAT(refusal({.form = 40, .data = jpeg(4, 3, 4, 3)}), HasSubstr("one component"));
  EXPECT_THAT(refusal({.form = 40000, .data = "something else"}), HasSubstr("begin otherwise"));
  const auto png = [](std::uint64_t width, std::uint64_t height) {
    return "\x89PNG\r\n\x1a\n" + number(13, 4) + "IHDR" + number(width, 4) + number(height, 4);
  };
  EXPECT_EQ(refusal({.form = 41, .data = png(4, 3)}), "nothing was thrown");
  EXPECT_THAT(refusal({.form = 41, .data = png(5, 3)}), HasSubstr("5 x 3 for 12 values"));
  EXPECT_THAT(refusal({.form = 40010, .data = "something else"}), HasSubstr("begin otherwise"));
  // Equal values need no image.
  EXPECT_EQ(refusal({.form = 40, .bits = 0, .data = ""}), "nothing was thrown");
}

TEST(GribMessage, IsOneWholeMessage) {
  const std::string good = Message{}.text();
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_THAT(refusal_of(good.substr(0, size)), HasSubstr("damaged")) << size;
  EXPECT_THAT(refusal_of(good + "7777"), HasSubstr("it says that it has"));
  std::string other = good;
  other[7] = 3;
  EXPECT_THAT(refusal_of(other), HasSubstr("edition 3 is not supported"));
  std::string no_data = good;
  no_data[good.size() - 4 - 12 - 1] = 1;  // the number of section 7
  EXPECT_THAT(refusal_of(no_data), HasSubstr("no grid or no data"));
}

std::string edition1(const std::string& data, std::uint64_t flags = 0x80) {
  const std::string product =
      number(28, 3) + std::string(4, '\0') + number(flags, 1) + std::string(20, '\0');
  const std::string grid = number(32, 3) + std::string(29, '\0');
  const std::string bitmap = number(8, 3) + std::string(5, '\0');
  const std::string body = product + ((flags & 0x80) != 0 ? grid : "") +
                           ((flags & 0x40) != 0 ? bitmap : "") + number(data.size() + 3, 3) + data +
                           "7777";
  return "GRIB" + number(body.size() + 8, 3) + number(1, 1) + body;
}

TEST(GribMessage, OfEdition1) {
  const std::string data(20, '\0');
  for (const std::uint64_t flags : {0x00, 0x80, 0x40, 0xc0}) {
    const std::string text = edition1(data, flags);
    const GribMessage checked = check_grib_message(std::as_bytes(std::span(text)), 12);
    EXPECT_EQ(checked.edition, 1);
    EXPECT_EQ(checked.padding, 16u * 12 + 64);
    for (std::size_t size = 0; size < text.size(); ++size)
      EXPECT_THAT(refusal_of(text.substr(0, size)), HasSubstr("damaged")) << size;
  }
  std::string spectral = data;
  spectral[0] = '\x80';
  EXPECT_THAT(refusal_of(edition1(spectral)), HasSubstr("spherical harmonics"));
  std::string second_order = data;
  second_order[0] = '\x40';
  EXPECT_THAT(refusal_of(edition1(second_order)), HasSubstr("second-order packing"));
  std::string wrong = edition1(data);
  wrong[8 + 28 + 32 + 2] = 99;
  EXPECT_THAT(refusal_of(wrong), HasSubstr("its data section has another length"));
  wrong = edition1(data);
  wrong[8 + 2] = 120;
  EXPECT_THAT(refusal_of(wrong), HasSubstr("beyond its end"));
  EXPECT_THAT(refusal_of(edition1("abc")), HasSubstr("it has no data"));
}

}  // namespace grib_message_test
}  // namespace batchfs
