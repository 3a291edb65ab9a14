#include "fs/formats/zarr_batch.h"

#include <map>

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"
#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace zarr_batch_test {

using testing::ElementsAre;

std::map<std::string, std::string> files(const View& view, std::int64_t epoch, std::int64_t batch) {
  std::map<std::string, std::string> result;
  for (const ZarrBatchFile& file : zarr_batch_files(view, epoch, batch)) {
    EXPECT_EQ(file.size(), file.contents().size());
    EXPECT_TRUE(result.emplace(file.path, file.contents()).second) << file.path;
  }
  return result;
}

MemoryData weather() {
  MemoryData data;
  data.declare("t", "<f4", {"time", "level", "x"}, {6, 2, 3}, {1, 2, 3})
      .index<std::int32_t>("time", "<i4", {0, 6, 12, 18, 24, 30},
                           {{"units", "hours since 2000-01-01"}})
      .index<std::int32_t>("level", "<i4", {500, 850});
  return data;
}

TEST(ZarrBatch, NamesOfTheSingleChunk) {
  EXPECT_EQ(zarr_single_chunk(0), "0");
  EXPECT_EQ(zarr_single_chunk(1), "0");
  EXPECT_EQ(zarr_single_chunk(3), "0.0.0");
}

TEST(ZarrBatch, IsAStoreOfFormat2) {
  const auto view = parse_view(weather().dataset(), R"({"window": {"time": 1}, "batch": 4})");
  const auto all = files(*view, 0, 1);
  std::vector<std::string> paths;
  for (const auto& [path, text] : all) paths.push_back(path);
  EXPECT_THAT(paths, ElementsAre(".zattrs", ".zgroup", ".zmetadata", "level/.zarray",
                                 "level/.zattrs", "level/0", "t/.zarray", "t/.zattrs",
                                 "time_start/.zarray", "time_start/.zattrs", "time_start/0"));
  EXPECT_EQ(Json::parse(all.at(".zgroup")), Json::parse(R"({"zarr_format": 2})"));
  EXPECT_EQ(Json::parse(all.at("t/.zarray")),
            Json::parse(R"({"zarr_format": 2, "shape": [2, 1, 2, 3], "chunks": [2, 1, 2, 3],
    "dtype": "<f4", "compressor": null, "fill_value": null, "order": "C", "filters": null})"));
  EXPECT_EQ(
      Json::parse(all.at("t/.zattrs")),
      Json::parse(
          R"({"coordinates": "time_start", "_ARRAY_DIMENSIONS": ["sample", "time", "level", "x"]})"));
  EXPECT_EQ(
      Json::parse(all.at("time_start/.zattrs")),
      Json::parse(
          R"({"units": "nanoseconds since 1970-01-01", "calendar": "proleptic_gregorian", "_ARRAY_DIMENSIONS": ["sample"]})"));
  // Samples 4 and 5: 2000-01-02 and 2000-01-02T06.
  EXPECT_EQ(numbers<std::int64_t>(all.at("time_start/0")),
            (std::vector<std::int64_t>{946771200000000000, 946792800000000000}));
  EXPECT_EQ(numbers<std::int32_t>(all.at("level/0")), (std::vector<std::int32_t>{500, 850}));
  const Json metadata = Json::parse(all.at(".zmetadata"));
  EXPECT_EQ(metadata["zarr_consolidated_format"], 1);
  for (const auto& [path, text] : all)
    if (path.ends_with(".zarray") || path.ends_with(".zattrs") || path.ends_with(".zgroup")) {
      EXPECT_EQ(metadata["metadata"][path], Json::parse(text)) << path;
    }
}

TEST(ZarrBatch, FileNamesAreTheSameForEveryBatch) {
  const auto view =
      parse_view(weather().dataset(),
                 R"({"window": {"time": 1}, "batch": 4, "order": {"shuffle": "global"}})");
  auto paths = [&](std::int64_t epoch, std::int64_t batch) {
    std::vector<std::string> result;
    for (const ZarrBatchFile& file : zarr_batch_files(*view, epoch, batch))
      result.push_back(file.path);
    return result;
  };
  EXPECT_EQ(paths(0, 0), paths(0, 1));
  EXPECT_EQ(paths(0, 0), paths(9, 1));
}

TEST(ZarrBatch, HasAttributesAndTheNamesOfChannels) {
  MemoryData data;
  data.declare("t", "<f4", {"time", "x"}, {6, 3}, {1, 3}, {{"units", "K"}})
      .declare("s", "<f4", {"time", "x"}, {6, 3}, {1, 3}, {{"units", "m"}})
      .index<double>("x", "<f8", {1, 2, 3}, {{"units", "degrees_east"}});
  const auto all = files(*parse_view(data.dataset(), R"({"window": {"time": 1}, "batch": 2,
      "tensors": {"a": {"variables": ["t"]}, "b": {"variables": ["t", "s"], "stack": "channel"},
                  "c": {"variables": ["s", "t"], "stack": "channel"}}})"),
                         0, 1);
  const auto attributes = [&](const char* name) {
    return Json::parse(all.at(std::string(name) + "/.zattrs"));
  };
  EXPECT_EQ(attributes("a")["units"], "K");
  EXPECT_FALSE(attributes("b").contains("units"));  // K and m
  EXPECT_EQ(attributes("x")["units"], "degrees_east");
  // The same number of channels, but others: each stack has its own dimension.
  EXPECT_EQ(attributes("b")["_ARRAY_DIMENSIONS"],
            Json::parse(R"(["sample", "b_channel", "time", "x"])"));
  EXPECT_EQ(attributes("c")["_ARRAY_DIMENSIONS"][1], "c_channel");
  EXPECT_EQ(Json::parse(all.at("b_channel/.zarray"))["dtype"], "<U1");
  EXPECT_EQ(numbers<std::int32_t>(all.at("b_channel/0")), (std::vector<std::int32_t>{'t', 's'}));
  EXPECT_EQ(numbers<std::int32_t>(all.at("c_channel/0")), (std::vector<std::int32_t>{'s', 't'}));
  // `time` has no coordinate: positions in the store.
  EXPECT_EQ(numbers<std::int64_t>(all.at("time_start/0")), (std::vector<std::int64_t>{2, 3}));
}

TEST(ZarrBatch, TimesKeepTheirUnit) {
  // CF counts are of the tensor's own unit: seconds stay seconds.
  MemoryData data;
  data.declare("s", "<M8[s]", {"x"}, {2}, {2})
      .declare("ms", "<m8[ms]", {"x"}, {2}, {2})
      .declare("ns", "<M8[ns]", {"x"}, {2}, {2})
      .declare("day", "<M8[D]", {"x"}, {2}, {2});
  const auto all = files(*parse_view(data.dataset(), R"({"window": {"x": 1}})"), 0, 0);
  auto attribute = [&](const char* name, const char* key) {
    return Json::parse(all.at(std::string(name) + "/.zattrs"))[key];
  };
  EXPECT_EQ(attribute("s", "units"), "seconds since 1970-01-01");
  EXPECT_EQ(attribute("ns", "units"), "nanoseconds since 1970-01-01");
  EXPECT_EQ(attribute("ms", "units"), "milliseconds");
  EXPECT_EQ(attribute("ms", "dtype"), "timedelta64[ms]");
  for (const char* name : {"s", "ms", "ns"})
    EXPECT_EQ(Json::parse(all.at(std::string(name) + "/.zarray"))["dtype"], "<i8") << name;
  // A unit that CF has no short way for is stored as it is, which xarray passes on.
  EXPECT_FALSE(Json::parse(all.at("day/.zattrs")).contains("units"));
  EXPECT_EQ(Json::parse(all.at("day/.zarray"))["dtype"], "<M8[D]");
}

TEST(ZarrBatch, EmptyTensorsHaveValidChunks) {
  MemoryData data;
  data.declare("v", "<f4", {"t", "x"}, {3, 0}, {1, 1});
  const auto all = files(*parse_view(data.dataset(), R"({"window": {"t": 1}, "batch": 2})"), 0, 0);
  EXPECT_EQ(Json::parse(all.at("v/.zarray"))["shape"], Json::array({2, 1, 0}));
  EXPECT_EQ(Json::parse(all.at("v/.zarray"))["chunks"], Json::array({2, 1, 1}));
}

TEST(ZarrBatch, NamesOfTensorsCannotHideItsOwnFiles) {
  const auto dataset = weather().dataset();
  for (const char* name : {".zattrs", ".zgroup", ".zmetadata", ".zarray", "zarr.json"}) {
    const std::string view = R"({"window": {"time": 1}, "tensors": {")" + std::string(name) +
                             R"(": {"variables": ["t"]}}, "formats": )";
    const Error error = error_of([&] { parse_view(dataset, view + R"(["npy", "zarr"]})"); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.why(), testing::HasSubstr("Zarr keeps it for itself")) << name;
    EXPECT_NO_THROW(parse_view(dataset, view + R"(["npy"]})")) << name;
  }
}

TEST(ZarrBatch, DimensionsThatTensorsDisagreeAboutAreTheirOwn) {
  auto dims = [](const MemoryData& data, const std::string& view) {
    const auto all = files(*parse_view(data.dataset(), view), 0, 0);
    std::map<std::string, Json> result;
    for (const char* name : {"x", "y", "z"})
      if (all.contains(std::string(name) + "/.zattrs"))
        result[name] = Json::parse(all.at(std::string(name) + "/.zattrs"))["_ARRAY_DIMENSIONS"];
    return result;
  };
  auto names = [](const char* text) { return Json::parse(text); };
  // Two steps, and one.
  auto found = dims(
      weather(),
      R"({"window": {"time": 1}, "tensors": {"x": {"variables": ["t"], "offsets": {"time": [-1, 0]}},
    "y": {"variables": ["t"], "offsets": {"time": [1]}}}})");
  EXPECT_EQ(found["x"], names(R"(["sample", "x_time", "level", "x"])"));
  EXPECT_EQ(found["y"], names(R"(["sample", "y_time", "level", "x"])"));
  // The same number of steps, with other offsets.
  found = dims(
      weather(),
      R"({"window": {"time": 1}, "tensors": {"x": {"variables": ["t"], "offsets": {"time": [0]}},
    "y": {"variables": ["t"], "offsets": {"time": [1]}}}})");
  EXPECT_EQ(found["x"], names(R"(["sample", "time", "level", "x"])"));
  // A stack that is called as another's dimension with a coordinate, which keeps its name; and a
  // name that is taken.
  MemoryData data = weather();
  data.declare("u", "<f4", {"time", "y_level"}, {6, 4}, {1, 4});
  found = dims(
      data,
      R"({"window": {"time": 1}, "tensors": {"x": {"variables": ["t"]}, "z": {"variables": ["u"]},
    "y": {"variables": ["u"], "stack": "level", "dims": ["time", "level"]}}})");
  EXPECT_EQ(found["x"], names(R"(["sample", "time", "level", "x"])"));
  EXPECT_EQ(found["y"], names(R"(["sample", "time", "y_level_"])"));
  EXPECT_EQ(found["z"], names(R"(["sample", "time", "y_level"])"));
}

TEST(ZarrBatch, ACoordinateNeverHasATensorsName) {
  const auto dataset = weather().dataset();
  files(
      *parse_view(
          dataset,
          R"({"window": {"time": 2}, "tensors": {"time_start": {"variables": ["t"]}, "level": {"variables": ["t"], "offsets": {"time": [1]}}}})"),
      0, 0);
  MemoryData both;
  both.declare("v", "<f4", {"time", "time_start"}, {4, 4}, {4, 4})
      .index<double>("time", "<f8", {0, 1, 2, 3})
      .index<double>("time_start", "<f8", {0, 1, 2, 3});
  files(*parse_view(both.dataset(), R"({"window": {"time": 2}})"), 0, 0);
  files(*parse_view(both.dataset(), R"({"window": {"time": 2, "time_start": 1}})"), 0, 0);
}

}  // namespace zarr_batch_test
}  // namespace batchfs
