#pragma once
// The stores that --store NAME=URL names.

#include <string>

#include "tools/cli/store_options.h"

namespace batchfs {

/// Enters a store, or several: 'era=/data/y{1979..2020}.zarr' are the stores "era.1979" to
/// "era.2020", a series with the name "era"; 'y{1979..2020}=/data/{}.zarr' the stores "y1979" to
/// "y2020". Throws invalid_argument, why() for a message.
void add_named_stores(StoreOptions& options, const std::string& name, const std::string& url);

}  // namespace batchfs
