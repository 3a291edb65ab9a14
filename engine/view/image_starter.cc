#include "engine/view/image_starter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/view/tensors/tensor_layout.h"
#include "engine/view/view.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMaxTile = 256;
constexpr std::int64_t kTileSamples = 32;

/// One entry for each dimension; 0: whole.
std::vector<std::int64_t> tile_of(const Variable& image) {
  std::vector<std::int64_t> sizes(image.dims.size(), 0);
  const Dims& chunk = image.array->grid().chunk_shape();
  const std::vector<ArrayAxis>& axes = image.metadata->axes;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const auto type = d < axes.size() ? axes[d].type : ArrayAxis::Type::space;
    if (type == ArrayAxis::Type::time) sizes[d] = 1;
    if (type == ArrayAxis::Type::space)
      sizes[d] = std::max<std::int64_t>(1, std::min({image.shape[d], chunk[d], kMaxTile}));
  }
  return sizes;
}

double sample_bytes(const Variable& image, const std::vector<std::int64_t>& tile) {
  double bytes = image.cf.decoded.is_float() ? 4 : image.cf.decoded.itemsize;
  for (std::size_t d = 0; d < tile.size(); ++d)
    bytes *= static_cast<double>(tile[d] == 0 ? image.shape[d] : tile[d]);
  return bytes;
}

}  // namespace

StarterView image_starter_view(const Dataset& dataset, const std::string& name_of_image,
                               std::int64_t level, const std::string& name,
                               std::uint64_t max_batch_bytes) {
  const Variable& image = dataset.variable(name_of_image);
  if (!image.unsupported.empty() || !fits_tensor(image))
    throw Error(
        ErrorCode::not_found,
        fmt::format("the level's array cannot be in a tensor: {}",
                    image.unsupported.empty() ? image.cf.decoded.name() : image.unsupported));
  std::vector<std::int64_t> tile = tile_of(image);
  StarterView result;
  const auto limit = static_cast<double>(max_batch_bytes);
  result.full_bytes = sample_bytes(image, tile) * static_cast<double>(kTileSamples);
  for (auto longest = std::max_element(tile.begin(), tile.end());
       sample_bytes(image, tile) > limit && longest != tile.end() && *longest > 1;
       longest = std::max_element(tile.begin(), tile.end())) {
    *longest = (*longest + 1) / 2;
    result.reduced.push_back(
        fmt::format("a window of {} along {}", *longest,
                    image.dims[static_cast<std::size_t>(longest - tile.begin())]));
  }
  std::int64_t samples = kTileSamples;
  while (samples > 1 && sample_bytes(image, tile) * static_cast<double>(samples) > limit)
    samples /= 2;
  if (samples < kTileSamples)
    result.reduced.push_back(
        fmt::format("{} samples in a batch instead of {}", samples, kTileSamples));
  Json window = Json::object();
  for (std::size_t d = 0; d < tile.size(); ++d)
    if (tile[d] > 0) window[image.dims[d]] = tile[d];
  if (window.empty() && !image.dims.empty()) window[image.dims.front()] = 1;
  result.view = {{"name", name},
                 {"level", level},
                 {"variables", {name_of_image}},
                 {"window", std::move(window)},
                 {"batch", {{"size", samples}, {"remainder", "keep"}}},
                 {"order", {{"shuffle", "global"}, {"seed", 0}}},
                 {"epochs", 1},
                 {"dtype", "float32"},
                 {"formats", {"npy"}}};
  return result;
}

}  // namespace batchfs
