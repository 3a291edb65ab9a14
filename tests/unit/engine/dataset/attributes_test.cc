#include "engine/dataset/attributes.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace attributes_test {

Json decoded(const std::string& dtype, const Json& attributes) {
  MemoryData data;
  data.declare("v", dtype, {"x"}, {2}, {2}, attributes);
  return decoded_attributes(data.dataset()->variable("v"));
}

TEST(Attributes, ThoseOfTheEncodingAreLeftOut) {
  // xarray.open_zarr(...).v.attrs
  EXPECT_EQ(decoded("<i2", {{"units", "K"},
                            {"scale_factor", 0.5},
                            {"add_offset", 1.0},
                            {"_FillValue", -1},
                            {"missing_value", -1},
                            {"coordinates", "lat lon"},
                            {"long_name", "temperature"}}),
            Json({{"units", "K"}, {"long_name", "temperature"}}));
  EXPECT_EQ(decoded("<i4",
                    {{"units", "hours since 2000-01-01"}, {"calendar", "standard"}, {"axis", "T"}}),
            Json({{"axis", "T"}}));
  EXPECT_EQ(decoded("|i1", {{"dtype", "bool"}, {"flag", "f"}}), Json({{"flag", "f"}}));
}

TEST(Attributes, TimesThatAreNotDecodedKeepWhatTheyCount) {
  EXPECT_EQ(decoded("<i4", {{"units", "days since 2000-01-01"}, {"calendar", "360_day"}}),
            Json({{"units", "days since 2000-01-01"}, {"calendar", "360_day"}}));
}

}  // namespace attributes_test
}  // namespace batchfs
