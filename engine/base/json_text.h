#pragma once
// JSON for output.

#include <string>

#include "engine/base/json.h"

namespace batchfs {

/// Indented, or one line with `indent` -1. Bytes that are not UTF-8 (a directory's name may hold
/// any) become U+FFFD. Numbers that JSON lacks become the strings "NaN", "Infinity", "-Infinity".
std::string json_text(const Json& value, int indent = 2);

/// The same, but those numbers are the bare tokens NaN, Infinity and -Infinity, as Python's json
/// module writes and reads them: for Zarr metadata, whose readers take a string for another value.
std::string python_json_text(const Json& value, int indent = 2);

/// The value with those strings in place of the numbers, as fill values are in Zarr metadata.
Json with_named_numbers(Json value);

}  // namespace batchfs
