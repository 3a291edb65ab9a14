// The texts of a mount about its store, and those that others make.

#include <gmock/gmock.h>

#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace store_texts_test {

using testing::HasSubstr;

MemoryData weather() {
  MemoryData data;
  data.add("t", "<i2", {"time", "x"}, {4, 3}, counting<std::int16_t>(12),
           {{"units", "K"}, {"long_name", "air\ntemperature"}})
      .declare("bad", "<f4", {"x"}, {3}, {3})
      .index<std::int32_t>("time", "<i4", {0, 6, 12, 18}, {{"units", "hours since 2000-01-01"}});
  data.hierarchy.arrays.at("bad").unsupported = "the codec 'zfpy' is not supported";
  return data;
}

TEST(StoreTexts, SummaryOfTheStore) {
  Mounted mounted(weather(),
                  {R"({"name": "train", "variables": ["t"], "window": {"time": 1}, "batch": 3})"});
  const std::string text = mounted.read("summary.txt");
  for (const char* part :
       {"memory://store\n", "Zarr format 2, 3 arrays, 1 group, 52 B decoded", "\nDimensions\n",
        "time                     4", "\nCoordinates\n", "datetime64[ns]", "\nVariables\n",
        "not readable: the codec 'zfpy' is not supported", "\nViews\n",
        "views/train: 4 samples in 2 batches of 3", "(sample, time, x) (3, 1, 3)"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(Mounted(weather()).read("summary.txt"),
              HasSubstr("No views: write one with `batchfs view STORE > view.json`"));
}

TEST(StoreTexts, StringsOfAnyLengthHaveNoSize) {
  MemoryData data = weather();
  data.declare("text", "<f4", {"x"}, {3}, {3});
  data.hierarchy.arrays.at("text").type = make_type(Kind::variable_string, 0);
  data.hierarchy.arrays.at("text").unsupported = "it is a test's";
  Mounted mounted(data);
  EXPECT_THAT(mounted.read("summary.txt"), HasSubstr("4 arrays, 1 group, 52 B decoded"));
  EXPECT_THAT(mounted.read("arrays/text/summary.txt"), HasSubstr("size        varies\n"));
  EXPECT_TRUE(Json::parse(mounted.read("store.json"))["arrays"]["text"]["bytes"].is_null());
}

TEST(StoreTexts, SummaryOfAnArray) {
  Mounted mounted(weather());
  const std::string text = mounted.read("arrays/t/summary.txt");
  for (const char* part : {"t: int16 (4, 3)\n", "dimensions  time, x", "chunks      (4, 3)",
                           "codecs", "size        24 B", "units       K"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(mounted.read("arrays/bad/summary.txt"), HasSubstr("not readable: the codec 'zfpy'"));
}

TEST(StoreTexts, StoreJson) {
  Mounted mounted(weather(), {R"({"name": "train", "variables": ["t"], "window": {"time": 1}})"});
  const Json json = Json::parse(mounted.read("store.json"));
  EXPECT_EQ(json["url"], "memory://store");
  EXPECT_EQ(json["snapshot"], "snapshot");
  EXPECT_EQ(json["views"], Json::array({"train"}));
  EXPECT_EQ(
      json["arrays"]["t"],
      Json::parse(R"({"shape": [4, 3], "dims": ["time", "x"], "dtype": "int16", "bytes": 24})"));
  EXPECT_EQ(json["arrays"]["bad"]["unsupported"], "the codec 'zfpy' is not supported");
}

TEST(StoreTexts, MetadataIsAsStored) {
  MemoryData data = weather();
  EXPECT_EQ(Json::parse(Mounted(data).read("arrays/t/metadata.json")),
            data.hierarchy.arrays.at("t").document);
}

TEST(StoreTexts, OtherControlFiles) {
  Mounted mounted(weather());
  EXPECT_EQ(Json::parse(mounted.read(".batchfs/config.json")),
            Json::parse(R"({"memory": "256M"})"));
  mounted.log().warning("something is up");
  EXPECT_THAT(mounted.read(".batchfs/log"), HasSubstr("something is up"));
  // Their size is known when they are opened only.
  EXPECT_EQ(mounted.find(".batchfs/log")->size, 0u);
}

TEST(StoreTexts, NamesThatAreNotUtf8DoNotBreakThem) {
  MemoryData data = weather();
  data.add("latin\xe9", "<f4", {"x"}, {3}, std::vector<float>{1, 2, 3}, {{"units", "m"}});
  Mounted mounted(
      data, {R"({"name": "n", "window": {"x": 1}, "formats": ["npy", "safetensors", "zarr"]})"});
  EXPECT_TRUE(Json::parse(mounted.read("store.json"))["arrays"].contains("latin\xef\xbf\xbd"));
  EXPECT_NO_THROW(mounted.read("views/n/view.json"));
  EXPECT_NO_THROW(mounted.read("views/n/schema.json"));
  EXPECT_NO_THROW(mounted.read("views/n/epoch-0000/batch-000000.json"));
  EXPECT_NO_THROW(mounted.read("views/n/epoch-0000/batch-000000.safetensors"));
  EXPECT_NO_THROW(mounted.read("views/n/epoch-0000/batch-000000.zarr/.zmetadata"));
  EXPECT_EQ(mounted.read("arrays/latin\xe9/values.npy").size(), 4096u + 12);
}

}  // namespace store_texts_test
}  // namespace batchfs
