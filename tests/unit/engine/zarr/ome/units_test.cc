#include "engine/zarr/ome/units.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace units_test {

TEST(Units, AreReadAsPeopleAndMetadataWriteThem) {
  for (const char* unit : {"micrometer", "micrometre", "Micrometers", "um", "\u00b5m", "\u03bcm"}) {
    const auto size = unit_size(unit);
    ASSERT_TRUE(size) << unit;
    EXPECT_EQ(size->of, UnitSize::Of::length) << unit;
    EXPECT_DOUBLE_EQ(size->size, 1e-6) << unit;
  }
  EXPECT_DOUBLE_EQ(unit_size("m")->size, 1);
  EXPECT_DOUBLE_EQ(unit_size("mm")->size, 1e-3);
  EXPECT_DOUBLE_EQ(unit_size("Mm")->size, 1e6);
  EXPECT_DOUBLE_EQ(unit_size("angstrom")->size, 1e-10);
  EXPECT_DOUBLE_EQ(unit_size("inch")->size, 0.0254);
  EXPECT_EQ(unit_size("ms")->of, UnitSize::Of::time);
  EXPECT_DOUBLE_EQ(unit_size("millisecond")->size, 1e-3);
  EXPECT_DOUBLE_EQ(unit_size("h")->size, 3600);
  for (const char* other : {"", "px", "meterx", "megahertz", "micro"})
    EXPECT_FALSE(unit_size(other)) << other;
}

}  // namespace units_test
}  // namespace batchfs
