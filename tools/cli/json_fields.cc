#include "tools/cli/json_fields.h"

#include <cmath>

namespace batchfs {

namespace {

const Json* field(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto it = json.find(key);
  return it != json.end() ? &*it : nullptr;
}

}  // namespace

double number_field(const Json& json, const char* key) {
  const Json* found = field(json, key);
  return found != nullptr && found->is_number() ? found->get<double>() : 0;
}

std::uint64_t count_field(const Json& json, const char* key) {
  const double value = number_field(json, key);
  return value > 0 && value < 1e19 ? static_cast<std::uint64_t>(value) : 0;
}

std::int64_t integer_field(const Json& json, const char* key) {
  const double value = number_field(json, key);
  return std::fabs(value) < 9e15 ? static_cast<std::int64_t>(value) : 0;
}

std::string text_field(const Json& json, const char* key) {
  const Json* found = field(json, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

const Json& object_field(const Json& json, const char* key) {
  static const Json kNone = Json::object();
  const Json* found = field(json, key);
  return found != nullptr && found->is_object() ? *found : kNone;
}

const Json& list_field(const Json& json, const char* key) {
  static const Json kNone = Json::array();
  const Json* found = field(json, key);
  return found != nullptr && found->is_array() ? *found : kNone;
}

}  // namespace batchfs
