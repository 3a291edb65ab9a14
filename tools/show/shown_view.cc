#include "tools/show/shown_view.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/scan/moments.h"
#include "fs/formats/element_number.h"
#include "fs/formats/formats.h"
#include "fs/formats/png.h"
#include "fs/formats/preview.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMaxLabels = 16;
constexpr std::size_t kMaxChannels = 200;
static_assert(kMaxLabels >= Preview::kMaxSamples);

/// Channel `channel` of a tensor: all elements of that position along its stack axis; without one,
/// all of the tensor.
ShownChannel statistics_of(const TensorSpec& tensor, const Dims& shape, std::int64_t channel,
                           std::span<const std::byte> values) {
  ShownChannel shown;
  shown.tensor = tensor.name;
  const bool stacked = tensor.stack_axis >= 0;
  if (stacked && channel < std::ssize(tensor.channels))
    shown.channel = tensor.channels[static_cast<std::size_t>(channel)];
  // Runs of `inner` elements, `outer` of them, that lie channels * inner apart.
  std::int64_t inner = 1, outer = 1, channels = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (stacked && static_cast<int>(d) == tensor.stack_axis)
      channels = shape[d];
    else if (stacked && static_cast<int>(d) < tensor.stack_axis)
      outer *= shape[d];
    else
      inner *= shape[d];
  }
  double m2 = 0;
  CompensatedSum sum;
  std::int64_t finite = 0;
  const auto for_each = [&](auto use) {
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i) {
        const std::int64_t element = (o * channels + channel) * inner + i;
        use(element_number(tensor.type, values.data() + element * tensor.type.itemsize));
      }
  };
  shown.min = std::numeric_limits<double>::infinity();
  shown.max = -shown.min;
  for_each([&](double value) {
    ++shown.count;
    if (!std::isfinite(value)) {
      ++shown.missing;
      return;
    }
    ++finite;
    sum.add(value);
    shown.min = std::min(shown.min, value);
    shown.max = std::max(shown.max, value);
  });
  if (finite == 0) return shown;
  shown.mean = sum.value() / static_cast<double>(finite);
  for_each([&](double value) {
    if (std::isfinite(value)) m2 += (value - shown.mean) * (value - shown.mean);
  });
  shown.std = std::sqrt(m2 / static_cast<double>(finite));
  return shown;
}

void add_channels(ShownView& shown, const View& view, const std::vector<Dims>& shapes,
                  const std::vector<std::span<const std::byte>>& tensors) {
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const TensorSpec& tensor = view.tensors()[t];
    if (!has_number(tensor.type)) continue;
    const std::int64_t channels =
        tensor.stack_axis < 0 ? 1 : shapes[t][static_cast<std::size_t>(tensor.stack_axis)];
    for (std::int64_t c = 0; c < channels; ++c) {
      if (shown.channels.size() == kMaxChannels) {
        shown.more_channels += static_cast<std::size_t>(channels - c);
        break;
      }
      shown.channels.push_back(statistics_of(tensor, shapes[t], c, tensors[t]));
    }
  }
}

/// Throws no_memory for a batch above the limit for pictures.
void check_size(const Engine& engine, const BatchLayout& layout) {
  constexpr std::uint64_t kPart = 4;
  std::uint64_t bytes = 0;
  for (const BatchLayout::File& file : layout.files) bytes += file.size;
  const std::uint64_t limit = std::min(kMaxShownBatch, engine.budget().limit() / kPart);
  if (bytes > limit)
    throw Error(ErrorCode::no_memory, fmt::format("a batch takes {}, past the limit of {}",
                                                  format_size(bytes), format_size(limit)));
}

void read_batch(ShownView& shown, Engine& engine, const std::shared_ptr<const View>& view) {
  for (const TensorSpec& tensor : view->tensors())
    if (!has_number(tensor.type))
      throw Error(ErrorCode::not_supported,
                  fmt::format("tensor '{}' holds {}, which has no picture", tensor.name,
                              tensor.type.name()));
  const BatchRequest request{view, &png_format(), 0, 0, 0, 1};
  const BatchLayout layout = request.format->layout(*view, 0);
  check_size(engine, layout);
  const std::shared_ptr<const Batch> batch = engine.open(request);
  const std::vector<Dims> shapes = view->shapes(0);
  std::vector<std::span<const std::byte>> tensors;
  for (std::size_t t = 0; t < shapes.size(); ++t) {
    const auto bytes =
        static_cast<std::size_t>(element_count(shapes[t])) * view->tensors()[t].type.itemsize;
    const BatchLayout::Place& place = layout.tensors[t];
    tensors.push_back(bytes == 0 ? std::span<const std::byte>{}
                                 : batch->files[place.file].span().subspan(place.offset, bytes));
  }
  shown.batch_samples = view->sample_count(0);
  shown.labels = sample_captions(*view, 0, 0, kMaxLabels);
  add_channels(shown, *view, shapes, tensors);
  const Preview preview(*view, 0);
  shown.width = preview.width();
  shown.height = preview.height();
  shown.png = compressed_png(static_cast<std::uint32_t>(shown.width),
                             static_cast<std::uint32_t>(shown.height), preview_palette(),
                             preview.draw(tensors, shown.labels).pixels(), preview.colours());
}

}  // namespace

ShownView look_at_view(Engine& engine, const std::shared_ptr<const View>& view,
                       const std::string& file) {
  ShownView shown;
  shown.name = view->name();
  shown.file = file;
  shown.samples = view->samples();
  shown.batches = view->batches();
  shown.batch_size = view->batch_size();
  const std::vector<Dims> shapes = view->shapes(0);
  for (std::size_t t = 0; t < shapes.size(); ++t) {
    const TensorSpec& tensor = view->tensors()[t];
    shown.tensors.push_back({tensor.name, tensor.type.name(), tensor.dims, shapes[t]});
  }
  try {
    if (shown.batches == 0) throw Error(ErrorCode::not_found, "the view has no batches");
    read_batch(shown, engine, view);
  } catch (const Error& error) {
    shown.why_not = error.why();
  }
  return shown;
}

}  // namespace batchfs
