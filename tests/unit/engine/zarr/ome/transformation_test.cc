#include "engine/zarr/ome/transformation.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/zarr/ome/ome_data.h"

namespace batchfs {
namespace transformation_test {

using testing::ElementsAre;
using testing::HasSubstr;

AxisTransformation apply(const std::string& list) {
  return ome_data::parsed(list, [](const JsonRef& json) {
    AxisTransformation result(2);
    apply_transformations(json, result);
    return result;
  });
}

std::string why(const std::string& list) {
  return ome_data::refusal(list, [](const JsonRef& json) {
    AxisTransformation result(2);
    apply_transformations(json, result);
    return result;
  });
}

TEST(OmeTransformations, AreAppliedInTheirOrder) {
  const auto both = apply(R"([{"type": "scale", "scale": [2, 3]}, {"type": "identity"},
                              {"type": "translation", "translation": [10, -1]}])");
  EXPECT_THAT(both.scale, ElementsAre(2, 3));
  EXPECT_THAT(both.translation, ElementsAre(10, -1));
  const auto turned = apply(R"([{"type": "sequence", "transformations": [
      {"type": "translation", "translation": [10, -1]}, {"type": "scale", "scale": [2, 3]}]}])");
  EXPECT_THAT(turned.scale, ElementsAre(2, 3));
  EXPECT_THAT(turned.translation, ElementsAre(20, -3));
  EXPECT_EQ(turned.unknown, "");
}

TEST(OmeTransformations, ThatMixAxesAreUnknown) {
  EXPECT_EQ(apply(R"([{"type": "affine", "affine": [[1, 0, 0], [0, 1, 0]]}])").unknown,
            "v[0].type: the transformation 'affine' is not supported");
  EXPECT_EQ(apply(R"([{"type": "scale", "path": "a"}])").unknown,
            "v[0].path: parameters in an array are not supported");
}

TEST(OmeTransformations, ThatAreWrongAreNamed) {
  EXPECT_EQ(why("{}"), "v: expected a list");
  EXPECT_EQ(why("[3]"), "v[0]: expected an object");
  EXPECT_EQ(why(R"([{"type": "scale"}])"), "v[0]: the key 'scale' is missing");
  EXPECT_EQ(why(R"([{"type": "scale", "scale": [1]}])"), "v[0].scale: 1 numbers for 2 axes");
  EXPECT_EQ(why(R"([{"type": "scale", "scale": [1, 0]}])"), "v[0].scale[1]: 0 is not above 0");
  EXPECT_EQ(why(R"([{"type": "scale", "scale": [1, NaN]}])"), "v[0].scale[1]: expected a number");
  std::string many = R"([{"type": "identity"})";
  for (int i = 0; i < 32; ++i) many += R"(,{"type": "identity"})";
  EXPECT_THAT(why(many + "]"), HasSubstr("33 transformations"));
  std::string nested = R"({"type": "identity"})";
  for (int i = 0; i < 6; ++i)
    nested = R"({"type": "sequence", "transformations": [)" + nested + "]}";
  EXPECT_THAT(why("[" + nested + "]"), HasSubstr("more than 4 sequences inside one another"));
}

}  // namespace transformation_test
}  // namespace batchfs
