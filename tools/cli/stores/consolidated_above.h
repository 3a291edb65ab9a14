#pragma once
// Metadata of a group on a web server: the document that names its arrays may be that of a store
// above it, since a server of plain files cannot list, and consolidating is done at the root.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/store/store.h"
#include "engine/zarr/hierarchy.h"

namespace batchfs {

/// Looks for consolidated metadata at the URLs above `url`, nearest first, on the same server, and
/// takes the part at and below `url` from it. nullopt if none contains this group, or `url` is not
/// of a web server. `open` opens a store.
std::optional<Hierarchy> hierarchy_from_above(
    const std::string& url, std::uint64_t memory,
    const std::function<std::shared_ptr<Store>(const std::string& url)>& open);

}  // namespace batchfs
