#pragma once
// A directory as a store.

#include <filesystem>

#include "engine/store/store.h"

namespace batchfs {

struct LocalStoreOptions {
  bool follow_links = false;  // links may lead out of the store; else that is Error{access_denied}
};

/// Throws not_found unless `root` is a directory.
std::shared_ptr<Store> open_local_store(const std::filesystem::path& root, const LocalStoreOptions& options = {});

}  // namespace batchfs
