#pragma once
// Keys of consolidated metadata that no reader asks for, such as "b//.zattrs".

#include <map>
#include <string>

#include "engine/base/json.h"

namespace batchfs {

/// The documents that such keys of `metadata` may mean ("b/.zattrs") and that have no key of their
/// own, each with the reason why it is lost.
std::map<std::string, std::string> unread_documents(const Json::object_t& metadata);

}  // namespace batchfs
