#include "engine/store/http/query.h"

#include "engine/base/strings.h"
#include "engine/store/uri.h"

namespace batchfs {

std::string encode_query(const QueryParameters& parameters) {
  std::string query;
  for (const auto& [name, value] : parameters) {
    if (!query.empty()) query += '&';
    query += percent_encode(name) + "=" + percent_encode(value);
  }
  return query;
}

QueryParameters decode_query(std::string_view query) {
  QueryParameters parameters;
  for (const std::string& part : split(query, '&')) {
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
    parameters.emplace_back(percent_decode(std::string_view(part).substr(0, equals)),
                            percent_decode(value));
  }
  return parameters;
}

}  // namespace batchfs
