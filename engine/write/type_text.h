#pragma once
// Data types and fill values as the documents of Zarr spell them: the way back of
// engine/zarr/data_type.h.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/json.h"
#include "engine/zarr/data_type.h"

namespace batchfs {

/// The v3 `data_type`. Throws not_supported for sub-arrays in structured types.
Json v3_data_type(const DataType& type);
/// The v3 `fill_value` of one element, native order.
Json v3_fill_value(const DataType& type, std::span<const std::byte> element);
/// The v2 `fill_value` of one element.
Json v2_fill_value(const DataType& type, std::span<const std::byte> element);
/// The attribute `_FillValue` of a v3 array as xarray encodes it.
Json fill_attribute(const DataType& type, std::span<const std::byte> element);
/// The element that such an attribute names; nullopt for one that is not understood.
std::optional<std::vector<std::byte>> parse_fill_attribute(const DataType& type, const Json& value);

}  // namespace batchfs
