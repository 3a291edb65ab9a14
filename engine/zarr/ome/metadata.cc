#include "engine/zarr/ome/metadata.h"

#include <fmt/format.h>

namespace batchfs {

namespace {

constexpr std::size_t kMaxNamed = 4;

}  // namespace

const OmeImage& OmeMetadata::image(const std::string& group) const {
  if (const auto found = images.find(group); found != images.end()) return found->second;
  const std::string name = group.empty() ? "the root" : fmt::format("the group '{}'", group);
  for (const auto& [path, why] : problems)
    if (path == group)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the OME-Zarr metadata of {} cannot be used: {}", name, why));
  std::string others;
  std::size_t named = 0;
  for (const auto& [path, image] : images) {
    if (path.empty()) continue;
    if (named == kMaxNamed) {
      others += ", ...";
      break;
    }
    others += (named++ == 0 ? "; images are " : ", ") + path;
  }
  throw Error(ErrorCode::not_found,
              fmt::format("{} is not an OME-Zarr image with levels{}", name, others));
}

}  // namespace batchfs
