#pragma once
// Fields of JSON that another batchfs wrote, perhaps of another version: one that is missing or of
// another type is 0, "" or empty, and so is every field of a value that is not an object.

#include <cstdint>
#include <string>

#include "engine/base/json_text.h"

namespace batchfs {

double number_field(const Json& json, const char* key);
/// 0 for negative numbers and those beyond 10^19.
std::uint64_t count_field(const Json& json, const char* key);
/// 0 for numbers that a double does not hold exactly.
std::int64_t integer_field(const Json& json, const char* key);
std::string text_field(const Json& json, const char* key);
/// Valid as long as `json`.
const Json& object_field(const Json& json, const char* key);
const Json& list_field(const Json& json, const char* key);

}  // namespace batchfs
