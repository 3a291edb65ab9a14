#include "fs/formats/npy.h"

#include <gtest/gtest.h>

#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace npy_test {

DataType v2_type(const Json& dtype) { return parse_v2_type(JsonRef(dtype, "dtype"), ""); }

// numpy.lib.format.write_array_header_1_0(f, {"descr": numpy.lib.format.dtype_to_descr(dtype),
//                                             "fortran_order": False, "shape": shape}), without its
//                                             padding
TEST(NpyHeader, IsNumpysOwn) {
  const struct {
    const char* dtype;
    Dims shape;
    const char* header;
  } cases[] = {
      {R"("<f4")", {2, 3}, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"},
      {R"("<i8")", {3}, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }"},
      {R"("|b1")", {}, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }"},
      {R"("|i1")", {0, 5}, "{'descr': '|i1', 'fortran_order': False, 'shape': (0, 5), }"},
      {R"(">f8")",
       {1},
       "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }"},  // values are native
      {R"("<M8[ns]")", {1}, "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,), }"},
      {R"("|S5")", {1}, "{'descr': '|S5', 'fortran_order': False, 'shape': (1,), }"},
      {R"("<U5")", {1}, "{'descr': '<U5', 'fortran_order': False, 'shape': (1,), }"},
      {R"("<c16")", {1}, "{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }"},
      {R"([["a", "<i2"], ["b", "<f4", [2]]])",
       {1},
       "{'descr': [('a', '<i2'), ('b', '<f4', (2,))], 'fortran_order': False, 'shape': (1,), }"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.dtype);
    const std::string header = npy_header(v2_type(parse_json(c.dtype, "")), c.shape);
    EXPECT_EQ(header.size(), kPage);
    const ParsedNpy parsed = parse_npy(header);
    EXPECT_EQ(parsed.header, c.header);
    EXPECT_EQ(parsed.version, 1);
    EXPECT_TRUE(parsed.data.empty());
  }
}

TEST(NpyHeader, IsPaddedToWhatIsAskedFor) {
  for (std::uint64_t alignment : {64, 128, 4096, 65536})
    EXPECT_EQ(npy_header(float32(), {5}, alignment).size(), std::max<std::uint64_t>(alignment, 128))
        << alignment;
}

TEST(NpyHeader, OfManyFieldsIsOfVersion2) {
  Json fields = Json::array();
  for (int i = 0; i < 4000; ++i) fields.push_back({"field" + std::to_string(i), "<i2"});
  const std::string header = npy_header(v2_type(fields), {1});
  EXPECT_EQ(header.size() % kPage, 0u);
  EXPECT_GT(header.size(), 65536u);
  const ParsedNpy parsed = parse_npy(header);
  EXPECT_EQ(parsed.version, 2);
  EXPECT_NE(parsed.header.find("('field3999', '<i2')"), std::string::npos);
}

TEST(NpyHeader, NamesOfFieldsCannotBreakOut) {
  const ParsedNpy parsed = parse_npy(
      npy_header(v2_type(parse_json(R"([["a'), ('\\", "<i2"], ["b\n\u0001", "<i2"]])", "")), {1}));
  // repr("a'), ('\\") and repr("b\n\1"), with single quotes
  EXPECT_EQ(
      parsed.header,
      R"({'descr': [('a\'), (\'\\', '<i2'), ('b\x0a\x01', '<i2')], 'fortran_order': False, 'shape': (1,), })");
}

TEST(NpyHeader, NamesThatAreNotAsciiAreVersion3InUtf8) {
  const ParsedNpy parsed =
      parse_npy(npy_header(v2_type(parse_json(R"([["température", "<i2"]])", "")), {1}));
  EXPECT_EQ(parsed.version, 3);
  EXPECT_EQ(parsed.header,
            "{'descr': [('température', '<i2')], 'fortran_order': False, 'shape': (1,), }");
}

}  // namespace npy_test
}  // namespace batchfs
