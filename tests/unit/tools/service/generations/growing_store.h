#pragma once
// A local Zarr store of a few steps that a test extends, and a view of it.

#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/engine/store/temporary_directory.h"
#include "tools/service/generations/generation.h"

namespace batchfs {

class GrowingStore {
 public:
  GrowingStore() {
    write("s.zarr/.zgroup", R"({"zarr_format": 2})");
    write("s.zarr/t/.zattrs", R"({"_ARRAY_DIMENSIONS": ["time"]})");
    write("v.json", R"({"name": "v", "window": {"time": 1}, "batch": 2})");
    grow_to(4);
  }

  /// Step i has the value i.
  void grow_to(int steps) {
    for (int first = 0; first < steps; first += 2) {
      const std::int32_t values[] = {first, first + 1};
      write("s.zarr/t/" + std::to_string(first / 2),
            {reinterpret_cast<const char*>(values), sizeof values});
    }
    write("s.zarr/t/.zarray",
          R"({"zarr_format": 2, "shape": [)" + std::to_string(steps) +
              R"(], "chunks": [2], "dtype": "<i4", "compressor": null, "order": "C",
                 "filters": null, "fill_value": 0})");
  }
  void remove_array() { std::filesystem::remove_all(folder_.path() / "s.zarr/t"); }

  GenerationOptions options() const {
    GenerationOptions options;
    options.store.store = (folder_.path() / "s.zarr").string();
    options.store.memory = 256 << 20;
    options.views = {(folder_.path() / "v.json").string()};
    return options;
  }
  std::string folder() const { return folder_.path().string(); }

 private:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  TemporaryDirectory folder_;
};

}  // namespace batchfs
