#include "gpu/reader/file_labels.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/dataset/dataset.h"
#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::reader {
namespace file_labels_test {

class Files {
 public:
  ~Files() { std::filesystem::remove_all(root); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(
        (root + "/" + name).substr(0, (root + "/" + name).rfind('/')));
    std::ofstream(root + "/" + name, std::ios::binary) << text;
  }
  const std::string root = handoff::temporary_directory();
};

std::shared_ptr<Schema> schema() {
  auto made = std::make_shared<Schema>();
  made->coordinates.push_back({"x", parse_dtype("int32"), 3});
  made->windows.push_back({.dim = "x", .length = 3, .coordinate = 0});
  return made;
}

TEST(FileLabels, CoordinatesAreNpyFiles) {
  const Files files;
  std::string file("\x93NUMPY\x01\x00\x76\x00", 10);
  file += "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }";
  file.resize(127, ' ');
  file += '\n';
  for (const std::int32_t value : {5, 6, 7})
    file.append(reinterpret_cast<const char*>(&value), sizeof value);
  files.write("coords/x.npy", file);
  const auto coordinates = file_coordinates(files.root, schema());
  const auto values = coordinates->values(0);
  ASSERT_EQ(values.size(), 12u);
  std::int32_t last;
  std::memcpy(&last, values.data() + 8, sizeof last);
  EXPECT_EQ(last, 7);

  auto longer = schema();
  longer->coordinates[0].size = 4;
  EXPECT_THROW(file_coordinates(files.root, longer)->values(0), Error);
  longer->coordinates[0].name = "y";
  EXPECT_THROW(file_coordinates(files.root, longer)->values(0), Error);
}

TEST(FileLabels, WindowsAreThoseOfTheProvenance) {
  const Files files;
  files.write("batch-000000.json", R"({"samples": [8, 9], "starts": [[2], [0]]})");
  const auto windows = file_windows(files.root + "/batch-000000", schema(), 2);
  EXPECT_EQ(windows->values(), (Windows::Values{8, 9, 2, 0}));
  for (const char* text : {"", "[]", "{}", R"({"samples": [8, 9], "starts": [[2]]})",
                           R"({"samples": [8, 9], "starts": [[2], [3]]})",
                           R"({"samples": [8, -9], "starts": [[2], [0]]})",
                           R"({"samples": ["8", 9], "starts": [[2], [0]]})"}) {
    files.write("batch-000001.json", text);
    EXPECT_THROW(file_windows(files.root + "/batch-000001", schema(), 2)->values(), Error) << text;
  }
  EXPECT_THROW(file_windows(files.root + "/batch-000002", schema(), 2)->values(), Error);
}

}  // namespace file_labels_test
}  // namespace batchfs::reader
