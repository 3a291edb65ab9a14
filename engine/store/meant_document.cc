#include "engine/store/meant_document.h"

#include <algorithm>
#include <array>

#include "engine/store/store.h"

namespace batchfs {

std::optional<std::string> meant_document(std::string_view key) {
  constexpr std::array<std::string_view, 4> kDocuments = {"zarr.json", ".zarray", ".zgroup",
                                                          ".zattrs"};
  if (is_key(key)) return std::nullopt;
  std::string path;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view component = key.substr(begin, end - begin);
    begin = end + 1;
    if (component == ".." && path.empty()) return std::nullopt;  // outside of the store
    if (component == "..")
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    else if (!component.empty() && component != ".")
      path.append(path.empty() ? "" : "/").append(component);
  }
  const std::size_t slash = path.rfind('/');
  const std::string_view name =
      std::string_view(path).substr(slash == std::string::npos ? 0 : slash + 1);
  if (!is_key(path) || std::find(kDocuments.begin(), kDocuments.end(), name) == kDocuments.end())
    return std::nullopt;
  return path;
}

}  // namespace batchfs
