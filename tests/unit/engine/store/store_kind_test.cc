#include "engine/store/store_kind.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace store_kind_test {

using namespace std::string_view_literals;

std::optional<StoreKind> kind_of(std::string_view head) {
  return kind_of_file(std::as_bytes(std::span(head)));
}

TEST(StoreKindTest, FilesAreToldByTheirFirstBytes) {
  EXPECT_EQ(kind_of("\x89HDF\r\n\x1a\n and more"), StoreKind::hdf5);
  EXPECT_EQ(kind_of("CDF\x05 and more"), StoreKind::netcdf3);
  EXPECT_EQ(kind_of("GRIB\0\0\0\x02"sv), StoreKind::grib);
  EXPECT_EQ(kind_of("II*\0\x08"sv), StoreKind::tiff);
  EXPECT_EQ(kind_of("MM\0+"sv), StoreKind::tiff);
  EXPECT_EQ(kind_of("PAR1"), StoreKind::parquet);
  EXPECT_EQ(kind_of("PK\x03\x04"), StoreKind::zip);
  for (const std::string_view other : {""sv, "II"sv, "hello"sv, "CDF\x03"sv, "\0\0\0\0"sv})
    EXPECT_EQ(kind_of(other), std::nullopt) << other;
}

TEST(StoreKindTest, ReferenceSetsAreJsonWithKeysOfAStore) {
  EXPECT_EQ(kind_of(R"({"version": 1, "refs": {}})"), StoreKind::kerchunk_json);
  EXPECT_EQ(kind_of("\n {\".zgroup\": \"{}\", \"x/0\": [\"a.nc\", 0, 10]}"),
            StoreKind::kerchunk_json);
  EXPECT_EQ(kind_of(R"([{"version": 1, "refs": {}}])"), StoreKind::kerchunk_json);
  EXPECT_EQ(kind_of(R"({"name": "train", "window": {"time": 1}})"), std::nullopt);
  EXPECT_EQ(kind_of(R"("refs")"), std::nullopt);
}

TEST(StoreKindTest, DirectoriesAreToldByTheirNames) {
  EXPECT_EQ(kind_of_directory({"chunks/", "manifests/", "refs/", "snapshots/", "transactions/"}),
            StoreKind::icechunk);
  EXPECT_EQ(kind_of_directory({"chunks/", "manifests/", "repo", "snapshots/"}),
            StoreKind::icechunk);
  EXPECT_EQ(kind_of_directory({"attributes.json", "x/"}), StoreKind::n5);
  EXPECT_EQ(kind_of_directory({"0.0", "attrs", "meta"}), StoreKind::zarr_v1);
  EXPECT_EQ(kind_of_directory({"refs/", "meta/", "attrs/", "chunks/"}), std::nullopt);
  EXPECT_EQ(kind_of_directory({}), std::nullopt);
}

TEST(StoreKindTest, UrlsAreToldByTheirEnding) {
  EXPECT_EQ(kind_of_name("https://example.org/air.NC?token=1"), StoreKind::hdf5);
  EXPECT_EQ(kind_of_name("s3://bucket/gfs.grib2"), StoreKind::grib);
  EXPECT_EQ(kind_of_name("s3://bucket/store.zarr"), std::nullopt);
}

TEST(StoreKindTest, TheRefusalSaysWhatToDo) {
  TemporaryDirectory directory;
  const std::string path = (directory.path() / "air.nc").string();
  std::ofstream(path) << "\x89HDF\r\n\x1a\n";
  try {
    refuse_other_file(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
    EXPECT_EQ(error.where(), path);
    EXPECT_THAT(error.why(), testing::StartsWith("this is a NetCDF-4 or HDF5 file, which batchfs "
                                                 "does not read; open it through references"));
  }
  std::ofstream(path) << "text";
  refuse_other_file(path);
  refuse_other_file(directory.path().string());
  refuse_other_file((directory.path() / "nothing").string());
}

}  // namespace store_kind_test
}  // namespace batchfs
