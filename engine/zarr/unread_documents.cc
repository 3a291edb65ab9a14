#include "engine/zarr/unread_documents.h"

#include <fmt/format.h>

#include "engine/base/printable.h"
#include "engine/store/meant_document.h"

namespace batchfs {

std::map<std::string, std::string> unread_documents(const Json::object_t& metadata) {
  std::map<std::string, std::string> unread;
  for (const auto& [key, document] : metadata)
    if (auto meant = meant_document(key))
      unread.emplace(std::move(*meant),
                     fmt::format("it has the key '{}', which no reader asks for", printable(key)));
  if (unread.empty()) return unread;
  for (const auto& [key, document] : metadata) unread.erase(key);
  return unread;
}

}  // namespace batchfs
