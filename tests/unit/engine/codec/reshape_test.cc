#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

namespace batchfs {
namespace reshape_test {

/// The shape that the next codec gets, or the error.
std::string reshaped(std::string_view shape, Dims chunk = {100, 50, 64, 3}) {
  ChunkLayout layout{std::move(chunk), make_type(Kind::unsigned_int, 1), {}};
  const std::string error =
      failure([&] { make_codec("reshape", fmt::format(R"({{"shape": {}}})", shape), layout); });
  return error == "no error" ? fmt::format("{}", fmt::join(layout.shape, " ")) : error;
}

TEST(Reshape, TheShapesOfTheSpecification) {
  EXPECT_EQ(reshaped("[[0, 1], [2], 3]"), "5000 64 3");
  EXPECT_EQ(reshaped("[[0, 1], -1]"), "5000 192");
  EXPECT_EQ(reshaped("[-1]"), "960000");
  EXPECT_EQ(reshaped("[[0, 1], 2, 32, [3]]"), "5000 2 32 3");
  EXPECT_EQ(reshaped("[[0], [], 1, -1]"), "100 1 1 9600");
  EXPECT_EQ(reshaped("[[0], [1, 2, 3]]", {0 + 2, 1, 1, 1}), "2 1");
  EXPECT_EQ(reshaped("[]", {1, 1}), "");
  EXPECT_EQ(reshaped("[1, 1]", {}), "1 1");
}

TEST(Reshape, RefusesOtherShapes) {
  EXPECT_EQ(reshaped("[[1], [0]]"), "reshape.shape[1][0]: the dimensions do not ascend");
  EXPECT_EQ(reshaped("[[1, 0], 10, [2, 3]]"), "reshape.shape[0][1]: the dimensions do not ascend");
  EXPECT_EQ(reshaped("[[0, 1], [1, 2]]"), "reshape.shape[1][0]: the dimensions do not ascend");
  EXPECT_EQ(reshaped("[[0, 2], -1]"),
            "reshape.shape[0]: these dimensions are not side by side in the chunk");
  EXPECT_EQ(reshaped("[50, [1], -1]"),
            "reshape.shape[1]: these dimensions are not side by side in the chunk");
  EXPECT_EQ(reshaped("[-1, -1]"), "reshape.shape[1]: -1 is there twice");
  EXPECT_EQ(reshaped("[7, -1]"), "reshape.shape: not the 960000 elements of a chunk");
  EXPECT_EQ(reshaped("[100]"), "reshape.shape: not the 960000 elements of a chunk");
  EXPECT_EQ(reshaped("[9223372036854775807, 3]"), "reshape.shape: more elements than a chunk has");
  EXPECT_EQ(reshaped("[0]"), "reshape.shape[0]: a length from 1 on, -1 or a list was expected");
  EXPECT_EQ(reshaped("[[4]]"), "reshape.shape[0][0]: 4 is too large, the most is 3");
  EXPECT_EQ(reshaped("3"), "reshape.shape: expected a list");
  EXPECT_EQ(reshaped("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", {1}),
            "reshape.shape: more than 16 dimensions are not supported");
}

TEST(Reshape, TheBytesStay) {
  const auto codec = make_codec("reshape", R"({"shape": [-1]})");
  EXPECT_EQ(decode(*codec, hex("010203"), 3), hex("010203"));
  EXPECT_TRUE(fails(*codec, hex("010203"), 2));
}

}  // namespace reshape_test
}  // namespace batchfs
