#include "fs/formats.h"

#include <algorithm>
#include <map>

namespace batchfs {

std::uint64_t batch_memory(const View& view, const MemoryFiles& files) {
  static const std::map<std::string_view, const BatchFormat*> kFormats = {
      {"npy", &npy_format()}, {"safetensors", &safetensors_format()}, {"npz", &npz_format()}, {"zarr", &raw_format()}};
  std::uint64_t most = 0;
  if (view.batches() == 0) return most;
  for (const std::string& name : view.formats()) {
    const auto format = kFormats.find(name);
    if (format == kFormats.end()) continue;
    std::uint64_t sum = 0;
    for (const BatchLayout::File& file : format->second->layout(view, 0).files) sum += files.memory_of(file.size);
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace batchfs
