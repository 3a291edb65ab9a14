#include "engine/codec/tiff/configured_shape.h"

#include "tests/unit/engine/codec/damage.h"

namespace batchfs {
namespace configured_shape_test {

ConfiguredShape parsed(std::string_view configuration, Dims chunk, std::size_t itemsize,
                       bool is_array = true) {
  const Json json = parse_json(configuration, "test");
  return {JsonRef(json, "c"), {std::move(chunk), make_type(Kind::raw, 2), {}}, itemsize, is_array};
}

TEST(ConfiguredShape, IsThatOfTheChunkUnlessConfigured) {
  EXPECT_EQ(parsed("{}", {4, 6}, 2).shape, (Dims{4, 6}));
  EXPECT_EQ(parsed(R"({"shape": null})", {4, 6}, 2, false).shape, Dims{24});
  EXPECT_EQ(parsed("{}", {4, 6}, 1, false).shape, Dims{48});
  EXPECT_EQ(parsed(R"({"shape": [3, 8]})", {4, 6}, 2).shape, (Dims{3, 8}));
}

TEST(ConfiguredShape, AxesCountFromEitherEnd) {
  EXPECT_EQ(parsed("{}", {4, 6, 2}, 2).axis, 2u);
  EXPECT_EQ(parsed(R"({"axis": -3})", {4, 6, 2}, 2).axis, 0u);
  EXPECT_EQ(parsed(R"({"axis": 1})", {4, 6, 2}, 2).axis, 1u);
  EXPECT_EQ(parsed("{}", {}, 2).axis, 0u);
  EXPECT_EQ(parsed(R"({"dist": 3})", {4}, 2).distance, 3);
}

TEST(ConfiguredShape, RefusesWhatDoesNotFit) {
  EXPECT_EQ(failure([] {
              parsed(R"({"shape": [3, 7]})", {4, 6}, 2);
            }),
            "c.shape: the shape does not have as many elements as a chunk");
  EXPECT_EQ(failure([] { parsed(R"({"shape": [0]})", {4}, 2); }),
            "c.shape[0]: 0 is too small, the least is 1");
  EXPECT_EQ(failure([] {
              parsed(R"({"axis": -3})", {4, 6}, 2);
            }),
            "c.axis: -3 is too small, the least is -2");
  EXPECT_EQ(failure([] { parsed(R"({"dist": 0})", {4}, 2); }),
            "c.dist: 0 is too small, the least is 1");
}

}  // namespace configured_shape_test
}  // namespace batchfs
