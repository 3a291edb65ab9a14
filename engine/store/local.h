#pragma once
// A directory as a store.

#include <filesystem>

#include "engine/store/store.h"

namespace batchfs {

/// Throws not_found unless `root` is a directory.
std::shared_ptr<Store> open_local_store(const std::filesystem::path& root);

}  // namespace batchfs
