#include "engine/store/icechunk/store_keys.h"

#include <algorithm>

#include "engine/base/strings.h"

namespace batchfs::icechunk {

std::optional<std::string_view> document_path(std::string_view key) {
  if (key == kDocumentName) return std::string_view();
  if (!key.ends_with(kDocumentName) || key[key.size() - kDocumentName.size() - 1] != '/')
    return std::nullopt;
  return key.substr(0, key.size() - kDocumentName.size() - 1);
}

std::optional<ChunkName> chunk_name(std::string_view key) {
  ChunkName name;
  for (;;) {
    const std::size_t slash = key.rfind('/');
    const std::string_view last = slash == std::string_view::npos ? key : key.substr(slash + 1);
    if (last == "c") {
      std::reverse(name.index.begin(), name.index.end());
      name.path = slash == std::string_view::npos ? std::string_view() : key.substr(0, slash);
      return name;
    }
    const auto number = parse_exact_number(last);
    if (!number || *number > UINT32_MAX || slash == std::string_view::npos) return std::nullopt;
    name.index.push_back(static_cast<std::uint32_t>(*number));
    key = key.substr(0, slash);
  }
}

}  // namespace batchfs::icechunk
