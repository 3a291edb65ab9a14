#pragma once
// Options of one of a command's stores: --store-option NAME.OPTION=VALUE.

#include <string>

#include "tools/cli/store_options.h"

namespace batchfs {

/// Enters "rain.endpoint=https://…" or "rain.anon". Throws invalid_argument, why() for a message,
/// for an option that a single store cannot have and for a wrong value.
/// check_store_settings() checks the names of the stores.
void add_store_setting(StoreOptions& options, const std::string& text);

/// Throws invalid_argument for a setting of an unknown store.
void check_store_settings(const StoreOptions& options);

/// Applies the settings of `options` for the store `name`, and for its series, to `own`: the
/// options that the store is opened with.
void apply_store_settings(const StoreOptions& options, const std::string& name, StoreOptions& own);

}  // namespace batchfs
