#pragma once
// Reference sets as JSON: kerchunk's versions 0 and 1.
//
// Source: fsspec/kerchunk docs/source/spec.rst, and fsspec's ReferenceFileSystem where that is
// silent. The text is read once from beginning to end, straight into the table.

#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/store/references/reference_table.h"

namespace batchfs::references {

/// Could these first bytes of a file begin a reference set?
bool may_be_reference_json(std::string_view head);

/// Throws invalid_argument for text that is not a set; not_supported for a list of sets (kerchunk's
/// scan_grib), newer versions, and items of `gen` that need more of jinja2; no_memory. A key whose
/// value cannot be read is malformed, and costs no other key.
std::shared_ptr<const ReferenceTable> parse_reference_json(std::string_view text,
                                                           std::uint64_t memory);

}  // namespace batchfs::references
