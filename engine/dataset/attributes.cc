#include "engine/dataset/attributes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/json.h"

namespace batchfs {

Json decoded_attributes(const Variable& variable) {
  return decoded_attributes(variable, variable.cf);
}

Json decoded_attributes(const Variable& variable, const CfDecoding& cf) {
  std::vector<std::string> stored{"_FillValue", "missing_value", "scale_factor",     "add_offset",
                                  "_Unsigned",  "coordinates",   "_ARRAY_DIMENSIONS"};
  if (cf.time != CfDecoding::Time::none) {
    stored.insert(stored.end(), {"units", "dtype"});
    if (cf.time == CfDecoding::Time::datetime) stored.push_back("calendar");
  }
  if (cf.to_bool) stored.push_back("dtype");
  if (variable.strings != nullptr || cf.joined_characters > 0) stored.push_back("_Encoding");
  Json attributes = Json::object();
  for (const auto& [key, value] : variable.attributes.items())
    if (std::find(stored.begin(), stored.end(), key) == stored.end()) attributes[key] = value;
  return attributes;
}

}  // namespace batchfs
