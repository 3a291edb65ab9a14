#include "fs/formats.h"

#include <algorithm>
#include <map>

namespace batchfs {

const BatchFormat& format_named(const std::string& name) {
  static const std::map<std::string, const BatchFormat*> kFormats = {{"npy", &npy_format()},
                                                                     {"safetensors", &safetensors_format()},
                                                                     {"npz", &npz_format()},
                                                                     {"png", &png_format()},
                                                                     {"zarr", &raw_format()}};
  return *kFormats.at(name);
}

std::uint64_t batch_memory(const View& view, const MemoryFiles& files) {
  std::uint64_t most = 0;
  if (view.batches() == 0) return most;
  for (const std::string& name : view.formats()) {
    std::uint64_t sum = 0;
    for (const BatchLayout::File& file : format_named(name).layout(view, 0).files) sum += files.memory_of(file.size);
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace batchfs
