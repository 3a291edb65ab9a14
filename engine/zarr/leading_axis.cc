#include "engine/zarr/leading_axis.h"

#include <fmt/format.h>

namespace batchfs {

namespace {

Dims widened(const Dims& dims) {
  Dims result{1};
  for (const std::int64_t length : dims) result.push_back(length);
  return result;
}

/// A codec whose configuration has an entry for each dimension. Errors in it stay: the codec
/// reports them.
void widen(const std::string& name, Json& configuration, bool of_format_3) {
  if (!configuration.is_object()) return;
  if (const auto order = configuration.find("order");
      name == "transpose" && order != configuration.end() && order->is_array()) {
    for (Json& dim : *order)
      if (dim.is_number_integer()) dim = dim.get<std::int64_t>() + 1;
    order->insert(order->begin(), 0);
  }
  if (const auto shape = configuration.find("shape");
      name == "reshape" && shape != configuration.end() && shape->is_array()) {
    for (Json& length : *shape)
      if (length.is_array())
        for (Json& dim : length)
          if (dim.is_number_integer()) dim = dim.get<std::int64_t>() + 1;
    shape->insert(shape->begin(), 1);
  }
  // Without a shape of its own, the axis is one of the chunk's; filters of format 2 see bytes.
  if (const auto axis = configuration.find("axis");
      name == "imagecodecs_delta" && of_format_3 && axis != configuration.end() &&
      axis->is_number_integer() && axis->get<std::int64_t>() >= 0 &&
      configuration.value("shape", Json()).is_null())
    *axis = axis->get<std::int64_t>() + 1;
  if (name != "sharding_indexed") return;
  if (const auto shape = configuration.find("chunk_shape");
      shape != configuration.end() && shape->is_array())
    shape->insert(shape->begin(), 1);
  if (const auto codecs = configuration.find("codecs");
      codecs != configuration.end() && codecs->is_array())
    for (Json& codec : *codecs)
      if (codec.is_object() && codec.contains("name") && codec["name"].is_string() &&
          codec.contains("configuration"))
        widen(codec["name"].get<std::string>(), codec["configuration"], true);
}

}  // namespace

ArrayMetadata add_leading_axis(const ArrayMetadata& array) {
  if (array.shape.size() >= static_cast<std::size_t>(kMaxArrayDims))
    throw Error(ErrorCode::not_supported,
                fmt::format("an array of {} dimensions cannot have one more", array.shape.size()));
  ArrayMetadata result = array;
  result.shape = widened(array.shape);
  result.chunk_shape = widened(array.chunk_shape);
  ++result.key_encoding.leading;
  for (CodecSpec& codec : result.codecs)
    widen(codec.name, codec.configuration, result.zarr_format == 3);
  if (!result.dimension_names.empty())
    result.dimension_names.insert(result.dimension_names.begin(), std::nullopt);
  if (!result.axes.empty()) result.axes.insert(result.axes.begin(), ArrayAxis());
  return result;
}

}  // namespace batchfs
