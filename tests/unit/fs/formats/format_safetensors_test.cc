#include <gmock/gmock.h>

#include "fs/formats/formats.h"
#include "tests/unit/engine/view/assembled.h"
#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace format_safetensors_test {

struct Parsed {
  Json header;
  std::uint64_t data = 0;
};

/// By the rules of the format alone: u64 length, JSON, bytes without holes.
Parsed parse(const BatchLayout& layout) {
  const std::string& bytes = layout.files.at(0).literals.at(0).bytes;
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(bytes.at(static_cast<std::size_t>(i)));
  EXPECT_EQ(8 + length, bytes.size());
  EXPECT_EQ(bytes.at(8), '{');
  Parsed parsed{Json::parse(bytes.substr(8)), 8 + length};
  // Data without holes, in any order.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const auto& [name, tensor] : parsed.header.items())
    ranges.emplace_back(tensor["data_offsets"][0], tensor["data_offsets"][1]);
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t at = 0;
  for (const auto& [begin, end] : ranges) {
    EXPECT_EQ(begin, at);
    at = end;
  }
  EXPECT_EQ(parsed.data + at, layout.files[0].size);
  return parsed;
}

TEST(SafetensorsFormat, HoldsEveryTypeAligned) {
  MemoryData data;
  data.declare("a", "|i1", {"t", "x"}, {5, 3}, {1, 3})
      .declare("b", "<f8", {"t"}, {5}, {5})
      .declare("c", "<f2", {"t"}, {5}, {5})
      .declare("d", "|b1", {"t"}, {5}, {5})
      .declare("e", "<M8[ns]", {"t"}, {5}, {5})
      .declare("f", "<u4", {"t"}, {5}, {5});
  const auto view = parse_view(data.dataset(), R"({"window": {"t": 1}, "batch": 3})");
  const BatchLayout layout = safetensors_format().layout(*view, 0);
  EXPECT_EQ(safetensors_format().name(), "safetensors");
  ASSERT_EQ(layout.files.size(), 1u);
  const Parsed parsed = parse(layout);
  EXPECT_EQ(parsed.data % 4096, 0u);
  const char* types[] = {"I8", "F64", "F16", "BOOL", "I64", "U32"};
  const std::uint64_t sizes[] = {1, 8, 2, 1, 8, 4};
  for (std::size_t t = 0; t < 6; ++t) {
    const std::string& name = view->tensors()[t].name;
    SCOPED_TRACE(name);
    EXPECT_EQ(parsed.header[name]["dtype"], types[t]);
    EXPECT_EQ(parsed.header[name]["shape"],
              name == "a" ? Json::array({3, 1, 3}) : Json::array({3, 1}));
    EXPECT_EQ(layout.tensors[t].offset,
              parsed.data + parsed.header[name]["data_offsets"][0].get<std::uint64_t>());
    EXPECT_EQ(layout.tensors[t].offset % sizes[t], 0u) << "not aligned";
  }
  EXPECT_EQ(parse(safetensors_format().layout(*view, 1)).header["b"]["shape"], Json::array({2, 1}));
}

TEST(SafetensorsFormat, RefusesTypesByName) {
  MemoryData data;
  data.declare("z", "<c8", {"t"}, {2}, {2});
  const auto view = parse_view(data.dataset(), R"({"window": {"t": 1}})");
  const Error error = error_of([&] { safetensors_format().layout(*view, 0); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_THAT(error.what(),
              testing::AllOf(testing::HasSubstr("complex64"), testing::HasSubstr("tensor z")));
}

TEST(SafetensorsFormat, NamesOfAnyBytesMakeValidJson) {
  MemoryData data;
  data.declare("quote\"s", "<f4", {"t"}, {2}, {2}).declare("latin\xe9", "<f4", {"t"}, {2}, {2});
  const auto view = parse_view(data.dataset(), R"({"window": {"t": 1}})");
  const Parsed parsed = parse(safetensors_format().layout(*view, 0));
  EXPECT_TRUE(parsed.header.contains("quote\"s"));
  EXPECT_TRUE(parsed.header.contains("latin\xef\xbf\xbd"));
}

}  // namespace format_safetensors_test
}  // namespace batchfs
