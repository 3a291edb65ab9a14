#include "gpu/reader/dtype.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs::reader {
namespace dtype_test {

TEST(Dtype, NumpysNamesAndDlpacksCodes) {
  struct {
    const char *name, *typestr;
    std::uint32_t itemsize;
    int code, bits;
  } const known[] = {{"float32", "<f4", 4, 2, 32},
                     {"float16", "<f2", 2, 2, 16},
                     {"int8", "|i1", 1, 0, 8},
                     {"uint64", "<u8", 8, 1, 64},
                     {"bool", "|b1", 1, 6, 8},
                     {"complex128", "<c16", 16, 5, 128},
                     {"bfloat16", "<V2", 2, 4, 16},
                     {"<U7", "<U7", 28, -1, 0},
                     {"|S3", "|S3", 3, -1, 0},
                     {"datetime64[ns]", "<M8[ns]", 8, -1, 0},
                     {"timedelta64[25s]", "<m8[25s]", 8, -1, 0}};
  for (const auto& expected : known) {
    const Dtype type = parse_dtype(expected.name);
    EXPECT_EQ(type.typestr, expected.typestr);
    EXPECT_EQ(type.itemsize, expected.itemsize) << expected.name;
    EXPECT_EQ(type.dlpack_code, expected.code) << expected.name;
    EXPECT_EQ(type.dlpack_bits, expected.bits) << expected.name;
  }
  for (const char* name : {"", "float", "float33", "int4", "float32x", "uint99999999999", "object",
                           "<U", "|S99999999999"})
    EXPECT_THROW(parse_dtype(name), Error) << name;
}

}  // namespace dtype_test
}  // namespace batchfs::reader
