#pragma once
// The query of a URL as names and values.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace batchfs {

/// Name and value, not encoded.
using QueryParameters = std::vector<std::pair<std::string, std::string>>;

/// "a=1&b=x%20y", in the given order.
std::string encode_query(const QueryParameters& parameters);
QueryParameters decode_query(std::string_view query);

}  // namespace batchfs
