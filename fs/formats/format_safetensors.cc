// Source: the safetensors format description: u64 length, JSON header, tensor bytes without holes.

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "fs/formats/formats.h"
#include "fs/formats/npy.h"

namespace batchfs {

namespace {

std::string safetensors_dtype(const TensorSpec& tensor) {
  const std::uint32_t bits = tensor.type.itemsize * 8;
  switch (tensor.type.kind) {
    case Kind::boolean:
      return "BOOL";
    case Kind::signed_int:
      return fmt::format("I{}", bits);
    case Kind::unsigned_int:
      return fmt::format("U{}", bits);
    case Kind::bfloat16:
      return "BF16";
    case Kind::floating:
      return fmt::format("F{}", bits);
    // There is no time type; writes the counts, like numpy's .view("int64").
    case Kind::datetime:
    case Kind::timedelta:
      return "I64";
    default:
      throw Error(ErrorCode::not_supported,
                  fmt::format("safetensors has no data type for {}; use another format",
                              tensor.type.name()),
                  "tensor " + tensor.name);
  }
}

class SafetensorsFormat final : public BatchFormat {
 public:
  std::string_view name() const override { return "safetensors"; }

  BatchLayout layout(const View& view, std::int64_t batch) const override {
    const std::vector<Dims> shapes = view.shapes(batch);
    // Largest items first: holes are not allowed, and so every tensor stays aligned.
    std::vector<std::size_t> order(shapes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return view.tensors()[a].type.itemsize > view.tensors()[b].type.itemsize;
    });
    Json header = Json::object();
    std::vector<std::uint64_t> offsets(shapes.size());
    std::uint64_t end = 0;
    for (std::size_t t : order) {
      const TensorSpec& tensor = view.tensors()[t];
      offsets[t] = end;
      end += static_cast<std::uint64_t>(element_count(shapes[t])) * tensor.type.itemsize;
      header[tensor.name] = {
          {"dtype", safetensors_dtype(tensor)},
          {"shape", std::vector<std::int64_t>(shapes[t].begin(), shapes[t].end())},
          {"data_offsets", {offsets[t], end}}};
    }
    std::string text = json_text(header, -1);
    const std::uint64_t data = (8 + text.size() + kPage - 1) / kPage * kPage;
    text.append(data - 8 - text.size(), ' ');
    std::string length;
    for (int i = 0; i < 8; ++i) length += static_cast<char>((text.size() >> (8 * i)) & 0xff);
    BatchLayout layout;
    layout.files.push_back({data + end, {{0, length + text}}});
    for (std::uint64_t offset : offsets) layout.tensors.push_back({0, data + offset});
    return layout;
  }
};

}  // namespace

const BatchFormat& safetensors_format() {
  static const SafetensorsFormat format;
  return format;
}

}  // namespace batchfs
