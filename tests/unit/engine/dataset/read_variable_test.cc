#include "engine/dataset/read_variable.h"

#include <gmock/gmock.h>

#include "engine/dataset/joined/concat_datasets.h"
#include "tests/unit/engine/array/vlen_strings.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace read_variable_test {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ReadVariable, RawValuesAreAsStored) {
  MemoryData data;
  data.add<std::int16_t>("v", "<i2", {"x"}, {2}, {1, 2}, {{"scale_factor", 0.5}});
  const auto dataset = data.dataset();
  EXPECT_EQ(values_of<std::int16_t>(read_variable(dataset->variable("v"), Decode::raw)),
            (std::vector<std::int16_t>{1, 2}));
  EXPECT_EQ(values_of<double>(read_variable(dataset->variable("v"))),
            (std::vector<double>{0.5, 1}));
}

TEST(ReadVariable, TruncatedChunksAreCorruptNotFill) {
  MemoryData data;
  data.add<float>("v", "<f4", {"x"}, {4}, {1, 2, 3});
  const auto dataset = data.dataset();
  const Error error = error_of([&] { read_variable(dataset->variable("v")); });
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  EXPECT_THAT(error.what(), HasSubstr("v/0"));
}

TEST(ReadVariable, CharacterArraysAreStrings) {
  MemoryData data;
  data.add<char>("name", "|S1", {"station", "length"}, {2, 3}, {'a', 'b', '\0', 'c', 'd', 'e'});
  const auto dataset = data.dataset();
  const Variable& name = dataset->variable("name");
  EXPECT_THAT(name.dims, ElementsAre("station"));
  EXPECT_EQ(name.shape, Dims{2});
  const NdArray values = read_variable(name);
  EXPECT_EQ(values.type.name(), "|S3");
  EXPECT_EQ(values_of<char>(values), (std::vector<char>{'a', 'b', '\0', 'c', 'd', 'e'}));
}

/// An array of format 2 whose elements are strings of any length, in one chunk.
Variable strings_of(MemoryData& data, const std::string& filter, const Strings& strings) {
  const Json zarray = {{"zarr_format", 2},           {"shape", {strings.size()}},
                       {"chunks", {strings.size()}}, {"dtype", "|O"},
                       {"compressor", nullptr},      {"order", "C"},
                       {"fill_value", ""},           {"filters", {{{"id", filter}}}}};
  data.hierarchy.arrays["s"] = parse_array_v2("s", zarray, {{"_ARRAY_DIMENSIONS", {"x"}}}, "s");
  data.store->objects["s/0"] = vlen(strings);
  return data.dataset()->variable("s");
}

TEST(ReadVariable, StringsOfAnyLengthAreAsLongAsTheLongest) {
  MemoryData data;
  const NdArray texts = read_variable(strings_of(data, "vlen-utf8", {"h\u00e9", "", "abc"}));
  EXPECT_EQ(texts.type.name(), "<U3");
  EXPECT_EQ(texts.shape, Dims{3});
  // numpy.array(["h\u00e9", "", "abc"]).view("u4")
  EXPECT_THAT(values_of<std::uint32_t>(texts), ElementsAre('h', 0xe9, 0, 0, 0, 0, 'a', 'b', 'c'));
  const NdArray bytes = read_variable(strings_of(data, "vlen-bytes", {"\xfe", "ab"}));
  EXPECT_EQ(bytes.type.name(), "|S2");
  EXPECT_THAT(values_of<char>(bytes), ElementsAre('\xfe', '\0', 'a', 'b'));
  EXPECT_EQ(read_variable(strings_of(data, "vlen-utf8", {"", ""})).type.name(), "<U1");
}

TEST(ReadVariable, LabelsOfAnAxisAreText) {
  Variable channel;
  channel.name = "c";
  channel.dims = {"c"};
  channel.shape = {2};
  ArrayAxis axis;
  axis.labels = std::make_shared<const Strings>(Strings{"DAPI", "GFP"});
  channel.axis = std::make_shared<const ArrayAxis>(axis);
  const NdArray labels = read_variable(channel);
  EXPECT_EQ(labels.type.name(), "<U4");
  EXPECT_THAT(values_of<std::uint32_t>(labels), ElementsAre('D', 'A', 'P', 'I', 'G', 'F', 'P', 0));
}

std::shared_ptr<const Dataset> joined(const MemoryData& a, const MemoryData& b) {
  return concat_datasets({{"a", a.dataset()}, {"b", b.dataset()}},
                         {std::nullopt, ConcatRule::Prefer::none, "sources.e"});
}

TEST(ReadVariable, PartsAreDecodedEachByItsOwnScale) {
  MemoryData a, b;
  a.index<std::int32_t>("x", "<i4", {1, 2}).index<std::int32_t>("y", "<i4", {0, 1});
  b.index<std::int32_t>("x", "<i4", {3}).index<std::int32_t>("y", "<i4", {0, 1});
  a.add<std::int16_t>("v", "<i2", {"y", "x"}, {2, 2}, {1, 2, 3, 4}, {{"scale_factor", 0.5}});
  b.add<std::int16_t>("v", "<i2", {"y", "x"}, {2, 1}, {5, 6}, {{"scale_factor", 2.0}});
  const auto dataset = joined(a, b);
  const NdArray values = read_variable(dataset->variable("v"));
  EXPECT_EQ(values.shape, (Dims{2, 3}));
  EXPECT_THAT(values_of<double>(values), ElementsAre(0.5, 1, 10, 1.5, 2, 12));
  EXPECT_THAT(values_of<std::int16_t>(read_variable(dataset->variable("v"), Decode::raw)),
              ElementsAre(1, 2, 5, 3, 4, 6));
}

TEST(ReadVariable, PartsOfDifferentStoredTypesHaveNoRawValues) {
  MemoryData a, b;
  a.index<std::int32_t>("x", "<i4", {1});
  b.index<std::int32_t>("x", "<i4", {3});
  a.add<std::int16_t>("v", "<i2", {"x"}, {1}, {1}, {{"scale_factor", 0.5}});
  b.add<std::int32_t>("v", "<i4", {"x"}, {1}, {5}, {{"scale_factor", 0.5}});
  const auto dataset = joined(a, b);
  const Error error = error_of([&] { read_variable(dataset->variable("v"), Decode::raw); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.why(), HasSubstr("int16 in 'a' and int32 in 'b'"));
  EXPECT_EQ(error.where(), "v");
}

const Json kDays = {{"units", "days since 2000-01-01"}};

TEST(ReadPart, IsDecodedAsTheWhole) {
  MemoryData data;
  data.add<std::int16_t>("v", "<i2", {"x", "y"}, {3, 2}, {1, 2, 3, 4, 5, 6},
                         {{"scale_factor", 0.5}})
      .add<char>("name", "|S1", {"x", "length"}, {3, 2}, {'a', 'b', 'c', 'd', 'e', 'f'})
      .add<std::int64_t>("time", "<i8", {"x"}, {3}, {1, 2, 3},
                         {{"units", "days since 2000-01-01"}});
  const auto dataset = data.dataset();
  const Variable& v = dataset->variable("v");
  ASSERT_TRUE(is_read_in_parts(v));
  EXPECT_EQ(value_bytes(v), 6 * sizeof(double));
  const NdArray part = read_part(v, 1, 2);
  EXPECT_EQ(part.shape, (Dims{2, 2}));
  EXPECT_EQ(values_of<double>(part), (std::vector<double>{1.5, 2, 2.5, 3}));
  const NdArray names = read_part(dataset->variable("name"), 2, 1);
  EXPECT_EQ(names.shape, Dims{1});
  EXPECT_EQ(values_of<char>(names), (std::vector<char>{'e', 'f'}));
  EXPECT_FALSE(is_read_in_parts(dataset->variable("time")));
}

TEST(ReadIndex, TimesOutsideOfDatetime64AreNumbersWithANote) {
  MemoryData data;
  data.index<std::int64_t>("near", "<i8", {0, 1}, kDays);
  data.index<std::int64_t>("far", "<i8", {0, 200000, 1}, kDays);
  const auto dataset = data.dataset();
  const Dataset::Index near = read_index(dataset->variable("near"));
  EXPECT_EQ(near.values.type.name(), "datetime64[ns]");
  EXPECT_THAT(values_of<std::int64_t>(near.values),
              ElementsAre(946684800000000000, 946771200000000000));
  EXPECT_EQ(near.cf.note, "");
  const Dataset::Index far = read_index(dataset->variable("far"));
  EXPECT_EQ(far.values.type.name(), "int64");
  EXPECT_THAT(values_of<std::int64_t>(far.values), ElementsAre(0, 200000, 1));
  EXPECT_THAT(far.cf.note, HasSubstr("days since 2000-01-01"));
}

TEST(SettledDecoding, LooksAtTheFirstAndTheLastTime) {
  MemoryData data;
  data.add<std::int64_t>("first", "<i8", {"x"}, {3}, {200000, 0, 1}, kDays);
  data.add<std::int64_t>("last", "<i8", {"x"}, {3}, {0, 1, 200000}, kDays);
  data.add<std::int64_t>("middle", "<i8", {"x"}, {3}, {0, 200000, 1}, kDays);
  data.add<std::int64_t>("number", "<i8", {"x"}, {3}, {0, 200000, 1});
  data.declare("empty", "<i8", {"none"}, {0}, {1}, kDays);
  const auto dataset = data.dataset();
  const auto decoding = [&](const char* name) { return settled_decoding(dataset->variable(name)); };
  for (const char* name : {"first", "last"}) {
    EXPECT_EQ(decoding(name).decoded.name(), "int64") << name;
    EXPECT_THAT(decoding(name).note, HasSubstr("days since 2000-01-01"));
  }
  for (const char* name : {"middle", "empty"})
    EXPECT_EQ(decoding(name).decoded.name(), "datetime64[ns]") << name;
  EXPECT_EQ(decoding("number").decoded.name(), "int64");
  EXPECT_EQ(decoding("number").note, "");
}

TEST(SettledDecoding, TimesThatCannotBeReadAreDecodedAsDeclared) {
  MemoryData data;
  data.add<std::int64_t>("t", "<i8", {"x"}, {2}, {200000}, kDays);  // half a chunk
  const auto dataset = data.dataset();
  EXPECT_EQ(settled_decoding(dataset->variable("t")).decoded.name(), "datetime64[ns]");
  EXPECT_EQ(error_of([&] { read_index(dataset->variable("t")); }).code(), ErrorCode::corrupt);
}

}  // namespace read_variable_test
}  // namespace batchfs
