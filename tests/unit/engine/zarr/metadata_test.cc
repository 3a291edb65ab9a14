#include "engine/zarr/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace metadata_test {

template <class Body>
std::string failure(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Keys as zarr-python has them: ChunkKeyEncoding.encode_chunk_key.
TEST(ChunkKeys, OfBothEncodingsAndSeparators) {
  using Style = ChunkKeyEncoding::Style;
  struct Case {
    Style style;
    char separator;
    const char *none, *one, *three;
  };
  const Case cases[] = {
      {Style::v2, '.', "0", "7", "1.0.12"},
      {Style::v2, '/', "0", "7", "1/0/12"},
      {Style::v3_default, '/', "c", "c/7", "c/1/0/12"},
      {Style::v3_default, '.', "c", "c.7", "c.1.0.12"},
  };
  for (const Case& c : cases) {
    const ChunkKeyEncoding encoding{c.style, c.separator};
    EXPECT_EQ(encoding.key({}), c.none);
    EXPECT_EQ(encoding.key({7}), c.one);
    EXPECT_EQ(encoding.key({1, 0, 12}), c.three);
  }
}

TEST(ParseDims, ChecksEveryLength) {
  auto of = [](const std::string& json, std::int64_t least) {
    const Json list = parse_json(json, "t");
    return parse_dims(JsonRef(list, "shape"), least);
  };
  EXPECT_EQ(of("[]", 0), Dims{});
  EXPECT_EQ(of("[0, 9223372036854775807, 3.0]", 0), (Dims{0, INT64_MAX, 3}));
  EXPECT_EQ(failure([&] { of("[0]", 1); }), "shape[0]: 0 is too small, the least is 1");
  EXPECT_EQ(failure([&] { of("[4, -1]", 0); }), "shape[1]: -1 is too small, the least is 0");
  EXPECT_EQ(failure([&] { of("[9223372036854775808]", 0); }), "shape[0]: the number is too large");
  EXPECT_EQ(failure([&] { of("[1e30]", 0); }), "shape[0]: expected a whole number");
  EXPECT_EQ(failure([&] { of("[1.5]", 0); }), "shape[0]: expected a whole number");
  EXPECT_EQ(failure([&] { of("[\"1\"]", 0); }), "shape[0]: expected a whole number");
  EXPECT_EQ(failure([&] { of("[true]", 0); }), "shape[0]: expected a whole number");
  EXPECT_EQ(failure([&] { of("[[1]]", 0); }), "shape[0]: expected a whole number");
  EXPECT_EQ(failure([&] { of("7", 0); }), "shape: expected a list");
  EXPECT_EQ(failure([&] { of("{}", 0); }), "shape: expected a list");
  EXPECT_EQ(of("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", 0).size(), 16u);
  EXPECT_EQ(failure([&] { of("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", 0); }),
            "shape: more than 16 dimensions are not supported");
}

TEST(ParseSeparator, IsADotOrASlash) {
  auto of = [](const std::string& json) {
    const Json text = parse_json(json, "t");
    return parse_separator(JsonRef(text, "dimension_separator"));
  };
  EXPECT_EQ(of("\".\""), '.');
  EXPECT_EQ(of("\"/\""), '/');
  for (const char* json : {"\"\"", "\"-\"", "\"./\"", "\"..\""})
    EXPECT_EQ(failure([&] { of(json); }), "dimension_separator: expected \".\" or \"/\"");
  EXPECT_EQ(failure([&] { of("1"); }), "dimension_separator: expected a string");
}

TEST(CheckSizes, RefusesWhatCannotBeAddressed) {
  auto check = [](Dims shape, Dims chunks, DataType type = float64()) {
    ArrayMetadata array;
    array.shape = shape;
    array.chunk_shape = chunks;
    array.type = type;
    return failure([&] { check_sizes(array); });
  };
  EXPECT_EQ(check({1000, 0}, {10, 10}), "no error");
  EXPECT_EQ(check({INT64_MAX}, {1024}, make_type(Kind::signed_int, 1)), "no error");
  EXPECT_EQ(check({INT64_MAX}, {1024}), "arrays larger than 2^63 bytes are not supported");
  EXPECT_EQ(check({INT64_C(1) << 32, INT64_C(1) << 32}, {1024, 1024}),
            "the shape has more than 2^63 elements");
  EXPECT_EQ(check({5}, {INT64_C(1) << 40}), "chunks larger than 1 TB are not supported");
  EXPECT_EQ(check({5}, {INT64_MAX}), "chunks larger than 1 TB are not supported");
  EXPECT_EQ(check({5, 5}, {INT64_MAX, INT64_MAX}), "the shape has more than 2^63 elements");
  EXPECT_EQ(check({5}, {INT64_C(1) << 37}), "no error");
}

}  // namespace metadata_test
}  // namespace batchfs
