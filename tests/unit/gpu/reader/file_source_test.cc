// Batches from files: a directory with the names and sizes of a mount's files.
#include "gpu/reader/file_source.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "engine/base/error.h"
#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::reader {
namespace file_source_test {

using handoff::temporary_directory;
using testing::HasSubstr;

/// A view's directory of ten samples in batches of four: x, 4 by 2 int32, whose first element is
/// its batch's number.
class ViewFiles {
 public:
  explicit ViewFiles(const std::string& formats = R"(["npy"])",
                     const std::string& remainder = "keep", int tensors = 1) {
    const auto tensor = [](const char* name) {
      return std::string(R"({"name": ")") + name +
             R"(", "dtype": "int32", "shape": [4, 2], "dims": ["sample", "a"]})";
    };
    write(
        "schema.json",
        R"({"view": "v", "samples": 7, "epoch_samples": 10, "batch_size": 4, "batches": 3, "epochs": 1, "formats": )" +
            formats + R"(, "tensors": [)" + tensor("x") + (tensors > 1 ? ", " + tensor("y") : "") +
            "]}");
    write("view.json", R"({"batch": {"size": 4, "remainder": ")" + remainder + R"("}})");
  }
  ~ViewFiles() { std::filesystem::remove_all(root_); }

  std::string path() const { return root_ + "/views/v"; }
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path() + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  /// Writes the format of numpy.save.
  void write_npy(const std::string& name, std::int32_t first, int rows = 4) const {
    std::string file("\x93NUMPY\x01\x00\x76\x00", 10);
    file +=
        "{'descr': '<i4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", 2), }";
    file.resize(127, ' ');
    file += '\n';
    for (std::int32_t i = 0; i < rows * 2; ++i, ++first)
      file.append(reinterpret_cast<const char*>(&first), 4);
    write(name, file);
  }

 private:
  const std::string root_ = temporary_directory();
};

std::int32_t first(const Batch& batch, std::size_t tensor = 0) {
  std::int32_t value;
  std::memcpy(&value, batch.tensors.at(tensor).data, sizeof value);
  return value;
}

Error error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "nothing was thrown");
}

TEST(FileSource, ReadsTheFilesOfASeries) {
  const ViewFiles files;
  files.write_npy("epoch-0002/batch-000000.npy", 100);
  files.write_npy("epoch-0002/batch-000001.npy", 101);
  files.write_npy("epoch-0002/batch-000002.npy", 102, 2);
  FileSource source(files.path());
  EXPECT_STREQ(source.mode(), "files");
  EXPECT_EQ(source.schema()->batches, 3);
  source.start({.epoch = 2, .first = 0, .step = 1, .count = 3}, 2);
  for (std::int64_t b = 0; b < 3; ++b) {
    const auto batch = source.next({});
    ASSERT_NE(batch, nullptr);
    EXPECT_EQ(batch->epoch, 2);
    EXPECT_EQ(batch->number, b);
    EXPECT_EQ(batch->samples, b < 2 ? 4 : 2);
    EXPECT_EQ(batch->tensors.at(0).shape, (std::vector<std::int64_t>{b < 2 ? 4 : 2, 2}));
    EXPECT_EQ(first(*batch), 100 + b);
  }
  EXPECT_EQ(source.next({}), nullptr);
}

TEST(FileSource, OpensTheFilesOfItsRankWhereThereAreSuch) {
  const ViewFiles files;
  files.write_npy("rank-1-of-2/epoch-0000/batch-000000.npy", 11);  // global batch 1
  files.write_npy("epoch-0000/batch-000001.npy", 1);
  FileSource source(files.path());
  source.start({.epoch = 0, .first = 1, .step = 2, .count = 1}, 2);
  EXPECT_EQ(first(*source.next({})), 11);
  EXPECT_EQ(first(*source.get(0, 1, {})), 1);
}

TEST(FileSource, PaddedRanksHaveBatchesBehindTheLast) {
  const ViewFiles files(R"(["npy"])", "pad");
  files.write_npy("rank-1-of-2/epoch-0000/batch-000001.npy",
                  31);  // global batch 3, of which there are 0 to 2
  FileSource source(files.path());
  source.start({.epoch = 0, .first = 3, .step = 2, .count = 1}, 2);
  const auto batch = source.next({});
  EXPECT_EQ(first(*batch), 31);
  EXPECT_EQ(batch->samples, 4);
}

TEST(FileSource, TensorsAreFilesOfADirectory) {
  const ViewFiles files(R"(["npy"])", "keep", 2);
  files.write_npy("epoch-0000/batch-000000/x.npy", 5);
  files.write_npy("epoch-0000/batch-000000/y.npy", 6);
  const auto batch = FileSource(files.path()).get(0, 0, {});
  ASSERT_EQ(batch->tensors.size(), 2u);
  EXPECT_EQ(first(*batch, 0), 5);
  EXPECT_EQ(first(*batch, 1), 6);
}

TEST(FileSource, SafetensorsAreTakenFirst) {
  const ViewFiles files(R"(["npy", "safetensors"])");
  const std::string header = R"({"x":{"dtype":"I32","shape":[4,2],"data_offsets":[0,32]}})";
  std::string file(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  file += header;
  for (std::int32_t i = 70; i < 78; ++i) file.append(reinterpret_cast<const char*>(&i), 4);
  files.write("epoch-0000/batch-000000.safetensors", file);
  EXPECT_EQ(first(*FileSource(files.path()).get(0, 0, {})), 70);
}

TEST(FileSource, WhatIsNotThereOrDamagedNamesTheFile) {
  const ViewFiles files;
  FileSource source(files.path());
  Error error = error_of([&] { source.get(0, 1, {}); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_THAT(error.where(), HasSubstr("/epoch-0000/batch-000001"));
  files.write("epoch-0000/batch-000001.npy", "no numpy file");
  error = error_of([&] { source.get(0, 1, {}); });
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  EXPECT_THAT(error.where(), HasSubstr("/epoch-0000/batch-000001"));
  // A series continues after a batch that fails.
  files.write_npy("epoch-0000/batch-000002.npy", 9, 2);
  source.start({.epoch = 0, .first = 1, .step = 1, .count = 2}, 2);
  EXPECT_EQ(error_of([&] { source.next({}); }).code(), ErrorCode::corrupt);
  EXPECT_EQ(first(*source.next({})), 9);
}

TEST(FileSource, FormatsThatCannotBeReadAreRefused) {
  const Error error = error_of([] { FileSource(ViewFiles(R"(["zarr", "npz"])").path()); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_THAT(error.why(), HasSubstr("add one of them to its \"formats\""));
  EXPECT_EQ(error_of([] { FileSource("/nowhere"); }).code(), ErrorCode::not_found);
}

TEST(FileSource, TextsAreReadWhole) {
  const ViewFiles files;
  const std::string text(100'000, 'a');
  files.write("text", text);
  EXPECT_EQ(read_text(files.path() + "/text"), text);
  EXPECT_EQ(error_of([&] { read_text(files.path() + "/nothing"); }).code(), ErrorCode::not_found);
}

}  // namespace file_source_test
}  // namespace batchfs::reader
