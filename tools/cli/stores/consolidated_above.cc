#include "tools/cli/stores/consolidated_above.h"

#include "engine/base/error.h"
#include "engine/zarr/rerooted.h"

namespace batchfs {

namespace {

/// Each costs two requests.
constexpr int kMostLevels = 8;

}  // namespace

std::optional<Hierarchy> hierarchy_from_above(
    const std::string& url, std::uint64_t memory,
    const std::function<std::shared_ptr<Store>(const std::string& url)>& open) {
  if (!url.starts_with("http://") && !url.starts_with("https://")) return std::nullopt;
  if (url.find_first_of("?#") != std::string::npos) return std::nullopt;
  std::string above = url;
  while (above.ends_with('/')) above.pop_back();
  std::string path;
  for (int level = 0; level < kMostLevels; ++level) {
    const std::size_t slash = above.rfind('/');
    if (slash <= above.find("//") + 1) return std::nullopt;  // only the server is left
    const std::string name = above.substr(slash + 1);
    if (name.empty() || name.find('%') != std::string::npos) return std::nullopt;
    path = path.empty() ? name : name + "/" + path;
    above.resize(slash);
    try {
      const std::shared_ptr<Store> store = open(above);
      Hierarchy found = rerooted(open_hierarchy(*store, memory), path);
      if (found.consolidated && !found.groups.empty()) return found;
    } catch (const Error& error) {
      // No store, or one of another kind, or a place that this user may not read.
      if (error.code() != ErrorCode::not_found && error.code() != ErrorCode::not_supported &&
          error.code() != ErrorCode::access_denied && error.code() != ErrorCode::invalid_argument &&
          error.code() != ErrorCode::corrupt)
        throw;
    }
  }
  return std::nullopt;
}

}  // namespace batchfs
