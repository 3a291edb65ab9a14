#include "fs/file_system.h"

#include <random>
#include <set>

#include <gmock/gmock.h>

#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace file_system_test {

using testing::ElementsAre;
using testing::HasSubstr;

/// 6 times of 2 by 3; stored as 7 times their values.
MemoryData weather() {
  MemoryData data;
  data.hierarchy.groups["deep"] = {"deep"};
  data.add("t", "<i2", {"time", "y", "x"}, {6, 2, 3}, counting<std::int16_t>(36),
           {{"scale_factor", 0.5}})
      .add("deep/er/u", "<f4", {"x"}, {3}, std::vector<float>{1, 2, 3})
      .index<std::int32_t>("time", "<i4", {0, 6, 12, 18, 24, 30},
                           {{"units", "hours since 2000-01-01"}})
      .declare("bad", "<i2", {"x"}, {3}, {3})
      .declare("scalar", "<f8", {}, {}, {}, Json::object(), 2.5)
      .declare("empty", "<f4", {"none"}, {0}, {1});
  data.hierarchy.arrays.at("bad").unsupported = "the codec 'zfpy' is not supported";
  return data;
}

const char* kAll =
    R"({"name": "all", "variables": ["t"], "window": {"time": 1}, "batch": 4, "epochs": 2,
                       "formats": ["npy", "safetensors", "npz", "zarr"]})";
const char* kTwo = R"({"name": "two", "window": {"time": 1}, "batch": 4, "tensors":
                       {"x": {"variables": ["t"]}, "y": {"variables": ["t"], "offsets": {"time": [1]}}}})";

TEST(FileSystem, CountsTheBytesOfAllArrays) {
  Mounted mounted(weather());
  // 36 * 2 + 3 * 4 + 6 * 4 + 1 * 8 + 0 * 4; unreadable arrays do not count
  EXPECT_EQ(mounted.files().total_bytes(), 72u + 12 + 24 + 8);
  EXPECT_THAT(mounted.read("summary.txt"), HasSubstr("122 B decoded"));
}

TEST(FileSystem, ListsTheLayoutOfTheManual) {
  Mounted mounted(weather(), {kAll, kTwo});
  EXPECT_THAT(mounted.names(""), ElementsAre("arrays", "store.json", "summary.txt", "views"));
  EXPECT_THAT(mounted.names("arrays"), ElementsAre("bad", "deep", "empty", "scalar", "t", "time"));
  EXPECT_THAT(mounted.names("arrays/t"),
              ElementsAre("chunks", "metadata.json", "summary.txt", "values.npy"));
  EXPECT_THAT(mounted.names("arrays/bad"), ElementsAre("metadata.json", "summary.txt"));
  EXPECT_THAT(mounted.names("arrays/deep/er"), ElementsAre("u"));
  EXPECT_THAT(mounted.names("arrays/t/chunks"), ElementsAre("0.0.0.npy"));
  EXPECT_THAT(mounted.names("arrays/scalar/chunks"), ElementsAre("0.npy"));
  EXPECT_THAT(mounted.names("arrays/empty/chunks"), ElementsAre());
  EXPECT_THAT(mounted.names("views"), ElementsAre("all", "two"));
  EXPECT_THAT(mounted.names("views/all"),
              ElementsAre("coords", "schema.json", "view.json", "epoch-0000", "epoch-0001"));
  EXPECT_THAT(mounted.names("views/all/coords"), ElementsAre("time.npy"));
  EXPECT_THAT(mounted.names("views/all/epoch-0000"),
              ElementsAre("batch-000000.npy", "batch-000000.safetensors", "batch-000000.npz",
                          "batch-000000.zarr", "batch-000000.json", "batch-000001.npy",
                          "batch-000001.safetensors", "batch-000001.npz", "batch-000001.zarr",
                          "batch-000001.json"));
  EXPECT_THAT(mounted.names("views/two/epoch-0000/batch-000000"), ElementsAre("x.npy", "y.npy"));
  EXPECT_THAT(mounted.names("views/all/rank-0-of-2"), ElementsAre("epoch-0000", "epoch-0001"));
  EXPECT_THAT(mounted.names(".batchfs"),
              ElementsAre("config.json", "log", "metrics", "status.json", "trace.json"));
}

/// Every reachable file: names agree between list and lookup, numbers are unique and lead back, and
/// every file has as many bytes as its size.
TEST(FileSystem, SizesNamesAndNumbersAgreeEverywhere) {
  Mounted mounted(weather(), {kAll, kTwo});
  std::set<FileNumber> seen;
  int files = 0;
  auto walk = [&](auto&& self, FileNumber directory, const std::string& path) -> void {
    for (const Listed& entry : mounted.list(directory)) {
      SCOPED_TRACE(path + "/" + entry.name);
      EXPECT_TRUE(seen.insert(entry.number).second) << "number used twice";
      const auto found = mounted.files().lookup(directory, entry.name);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->number, entry.number);
      EXPECT_EQ(found->directory, entry.directory);
      EXPECT_EQ(mounted.files().parent(entry.number), directory);
      const auto attributes = mounted.files().attributes(entry.number);
      ASSERT_TRUE(attributes);
      EXPECT_EQ(attributes->block_size,
                entry.name == "values.npy" ? Attributes::kLargeBlock : Attributes::kSmallBlock);
      EXPECT_EQ(attributes->size, found->size);
      if (entry.directory) {
        self(self, entry.number, path + "/" + entry.name);
      } else {
        EXPECT_EQ(mounted.read(entry.number).size(), found->size);
        ++files;
      }
    }
  };
  walk(walk, kRootIno, "");
  walk(walk, mounted.find("views/all/rank-1-of-2").value().number, "rank-1-of-2");
  walk(walk, mounted.find("views/two/epoch-0777").value().number, "epoch-0777");
  EXPECT_GT(files, 80);
  EXPECT_FALSE(seen.contains(mounted.find(".batchfs").value().number));
}

TEST(FileSystem, NamesAreExact) {
  Mounted mounted(weather(), {kAll, kTwo});
  for (const char* path :
       {"views/all/epoch-0000/batch-000001.npy", "views/all/epoch-0099", "views/all/epoch-12345",
        "views/all/rank-3-of-4/epoch-0000", "views/all/rank-0-of-65536",
        "arrays/t/chunks/0.0.0.npy", "views/all/epoch-0000/batch-000000.zarr/t/0.0.0.0",
        ".batchfs/status.json"})
    EXPECT_TRUE(mounted.find(path)) << path;
  for (const char* path : {"views/all/epoch-0",
                           "views/all/epoch-00000",
                           "views/all/epoch-000",
                           "views/all/epoch-00x0",
                           "views/all/epoch--001",
                           "views/all/epoch-+000",
                           "views/all/epoch- 000",
                           "views/all/epoch-0x10",
                           "views/all/epoch-99999999999999999999",
                           "views/all/epoch-9999999999",
                           "views/all/EPOCH-0000",
                           "views/all/epoch-0000 ",
                           "views/all/epoch-",
                           "views/all/rank-4-of-4",
                           "views/all/rank-0-of-0",
                           "views/all/rank-00-of-4",
                           "views/all/rank-0-of-04",
                           "views/all/rank-0-of-65537",
                           "views/all/rank--1-of-4",
                           "views/all/rank-0-of-",
                           "views/all/rank-0",
                           "views/all/rank-of-4",
                           "views/all/rank-0-of-4/rank-0-of-4",
                           "views/all/rank-0-of-4/view.json",
                           "views/all/rank-0-of-18446744073709551617",
                           "views/all/epoch-0000/batch-0.npy",
                           "views/all/epoch-0000/batch-000002.npy",
                           "views/all/epoch-0000/batch-0000000.npy",
                           "views/all/epoch-0000/batch-000000",
                           "views/all/epoch-0000/batch-000000.NPY",
                           "views/all/epoch-0000/batch-000000.npy.npy",
                           "views/all/epoch-0000/batch-.npy",
                           "views/all/epoch-0000/batch-00000a.npy",
                           "views/all/epoch-0000/batch-18446744073709551616.npy",
                           "views/all/epoch-0000/atch-000000.npy",
                           "views/two/epoch-0000/batch-000000.npy",
                           "views/two/epoch-0000/batch-000000/z.npy",
                           "views/all/epoch-0000/batch-000000.zarr/t/0.0.0.1",
                           "views/all/epoch-0000/batch-000000.zarr/zarr.json",
                           "arrays/t/chunks/0.0.npy",
                           "arrays/t/chunks/0.0.0.0.npy",
                           "arrays/t/chunks/1.0.0.npy",
                           "arrays/t/chunks/00.0.0.npy",
                           "arrays/t/chunks/0.0.0",
                           "arrays/t/chunks/.npy",
                           "arrays/t/chunks/0..0.npy",
                           "arrays/t/chunks/-1.0.0.npy",
                           "arrays/t/chunks/99999999999999999999.0.0.npy",
                           "arrays/scalar/chunks/1.npy",
                           "arrays/scalar/chunks/0.0.npy",
                           "arrays/empty/chunks/0.npy",
                           "arrays/bad/values.npy",
                           "arrays/bad/chunks",
                           "arrays/..",
                           "arrays/.",
                           "arrays/deep/..",
                           "..",
                           ".",
                           ".batchfs/..",
                           ".batchfs/handoff",
                           "nothing"}) {
    EXPECT_FALSE(mounted.find(path)) << path;
  }
}

TEST(FileSystem, NumbersOfNothingAreNothing) {
  Mounted mounted(weather(), {kAll, kTwo});
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const FileNumber number = i < 1000 ? static_cast<FileNumber>(i) : random() >> (random() % 64);
    const auto attributes = mounted.files().attributes(number);
    if (!attributes) {
      EXPECT_FALSE(mounted.files().lookup(number, "x"));
      EXPECT_FALSE(mounted.files().parent(number));
      mounted.files().list(number, 0, [](auto&&...) { return ADD_FAILURE(), false; });
      continue;
    }
    EXPECT_EQ(attributes->number, number);
    // Up to the root in a few steps.
    FileNumber at = number;
    for (int step = 0; step < 12 && at != kRootIno; ++step) at = mounted.files().parent(at).value();
    EXPECT_EQ(at, kRootIno);
  }
  EXPECT_EQ(error_of([&] { mounted.open(UINT64_MAX); }).code(), ErrorCode::not_found);
  EXPECT_EQ(error_of([&] { mounted.open(kRootIno); }).code(), ErrorCode::not_found);
}

TEST(FileSystem, ValuesAreStoredOnesAndBatchesDecoded) {
  Mounted mounted(weather(), {kAll, kTwo});
  const ParsedNpy values = parse_npy(mounted.read("arrays/t/values.npy"));
  EXPECT_EQ(values.header, "{'descr': '<i2', 'fortran_order': False, 'shape': (6, 2, 3), }");
  EXPECT_EQ(numbers<std::int16_t>(values.data), counting<std::int16_t>(36));
  EXPECT_EQ(mounted.read("arrays/t/chunks/0.0.0.npy"), mounted.read("arrays/t/values.npy"));
  const ParsedNpy batch = parse_npy(mounted.read("views/all/epoch-0000/batch-000001.npy"));
  EXPECT_EQ(batch.header, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1, 2, 3), }");
  // numpy.arange(36)[24:] * 0.5
  EXPECT_EQ(numbers<double>(batch.data),
            (std::vector<double>{12, 12.5, 13, 13.5, 14, 14.5, 15, 15.5, 16, 16.5, 17, 17.5}));
  EXPECT_EQ(mounted.read("views/two/epoch-0000/batch-000000/x.npy"),
            mounted.read("views/two/rank-0-of-2/epoch-0000/batch-000000/x.npy"));
  EXPECT_EQ(parse_npy(mounted.read("arrays/scalar/values.npy")).header,
            "{'descr': '<f8', 'fortran_order': False, 'shape': (), }");
  EXPECT_EQ(numbers<double>(parse_npy(mounted.read("arrays/scalar/chunks/0.npy")).data),
            std::vector<double>{2.5});
  const ParsedNpy time = parse_npy(mounted.read("views/all/coords/time.npy"));
  EXPECT_EQ(time.header, "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (6,), }");
  // (numpy.datetime64("2000-01-01T06", "ns")).astype(int)
  EXPECT_EQ(numbers<std::int64_t>(time.data)[1], 946706400000000000);
}

TEST(FileSystem, DataOfEveryNpyBeginsOnAPage) {
  Mounted mounted(weather(), {kAll});
  for (const char* path : {"arrays/t/values.npy", "arrays/t/chunks/0.0.0.npy",
                           "views/all/epoch-0000/batch-000000.npy", "views/all/coords/time.npy"}) {
    const std::string file = mounted.read(path);
    EXPECT_EQ(file.size() - parse_npy(file).data.size(), 4096u) << path;
  }
}

TEST(FileSystem, BatchesAreMemoryFilesAndTextsAreNot) {
  Mounted mounted(weather(), {kAll});
  auto open = [&](const char* path) { return mounted.open(mounted.find(path).value().number); };
  EXPECT_NE(open("views/all/epoch-0000/batch-000000.npy")->memory_file(), nullptr);
  EXPECT_NE(open("arrays/t/chunks/0.0.0.npy")->memory_file(), nullptr);
  EXPECT_EQ(open("arrays/t/values.npy")->memory_file(), nullptr);
  EXPECT_EQ(open("arrays/t/values.npy")->caching(), OpenFile::Caching::direct);
  EXPECT_EQ(open("views/all/schema.json")->caching(), OpenFile::Caching::kernel);
  EXPECT_EQ(open(".batchfs/status.json")->caching(), OpenFile::Caching::direct);
}

TEST(FileSystem, ADamagedChunkFailsItsReadersAndNoOther) {
  MemoryData data;
  data.declare("v", "<i4", {"t", "x"}, {4, 2}, {2, 2});
  data.store->objects["v/0.0"] = std::string(16, '\0');
  data.store->objects["v/1.0"] = std::string(15, '\0');
  Mounted mounted(data, {R"({"window": {"t": 1}, "batch": 2})"});
  EXPECT_EQ(mounted.read("views/v/epoch-0000/batch-000000.npy").size(), 4096u + 16);
  EXPECT_EQ(mounted.find("views/v/epoch-0000/batch-000001.npy")->size, 4096u + 16);
  const Error batch = error_of([&] { mounted.read("views/v/epoch-0000/batch-000001.npy"); });
  EXPECT_EQ(batch.code(), ErrorCode::corrupt);
  EXPECT_THAT(batch.what(), HasSubstr("v/1.0"));
  EXPECT_EQ(to_errno(batch.code()), EIO);
  EXPECT_EQ(error_of([&] { mounted.read("arrays/v/chunks/1.0.npy"); }).code(), ErrorCode::corrupt);
  EXPECT_EQ(error_of([&] { mounted.read("arrays/v/values.npy"); }).code(), ErrorCode::corrupt);
  EXPECT_EQ(mounted.read("arrays/v/chunks/0.0.npy").size(), 4096u + 16);
  EXPECT_THAT(mounted.log().text(), HasSubstr("v/1.0"));
}

TEST(FileSystem, WhatCannotBeReadIsLoggedOnceAtTheStart) {
  MemoryData data = weather();
  data.hierarchy.problems.emplace_back("broken/.zarray", "not valid JSON");
  Mounted mounted(data);
  EXPECT_THAT(mounted.log().text(), HasSubstr("bad: values cannot be read: the codec 'zfpy'"));
  EXPECT_THAT(mounted.log().text(), HasSubstr("broken/.zarray: not usable: not valid JSON"));
}

}  // namespace file_system_test
}  // namespace batchfs
