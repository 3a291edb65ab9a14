#pragma once
// The JSON schema of views, for editors.

#include <string_view>

namespace batchfs {

/// JSON Schema, draft 2020-12, of batchfs-view(5). It knows keys, types and ranges, not a store.
std::string_view view_schema();

}  // namespace batchfs
