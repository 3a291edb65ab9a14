#include "fs/formats/formats.h"

#include <algorithm>
#include <map>
#include <string>

#include "engine/base/error.h"
#include "engine/view/spec.h"

namespace batchfs {

const BatchFormat& format_named(const std::string& name) {
  static const std::map<std::string, const BatchFormat*> kFormats = {
      {"npy", &npy_format()},
      {"safetensors", &safetensors_format()},
      {"npz", &npz_format()},
      {"png", &png_format()},
      {"zarr", &raw_format()}};
  return *kFormats.at(name);
}

void check_formats(const View& view) {
  for (const std::string& name : view.spec().formats) {
    if (name == "safetensors" || name == "png") continue;
    for (const TensorSpec& tensor : view.tensors())
      if (tensor.type.kind == Kind::bfloat16)
        throw Error(ErrorCode::not_supported,
                    "of the formats only safetensors has bfloat16: write \"formats\": "
                    "[\"safetensors\"], or hand the batches "
                    "over with batchfs serve, which needs no format",
                    "tensor " + tensor.name);
  }
}

std::uint64_t batch_memory(const View& view, const MemoryFiles& files) {
  std::uint64_t most = 0;
  if (view.batches() == 0) return most;
  for (const std::string& name : view.spec().formats) {
    std::uint64_t sum = 0;
    for (const BatchLayout::File& file : format_named(name).layout(view, 0).files)
      sum += files.memory_of(file.size);
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace batchfs
