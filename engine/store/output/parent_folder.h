#pragma once
// The rule for places that are written to: the last component of a path is made, the folder that it
// is in must exist.

#include <filesystem>

namespace batchfs {

/// Throws not_found, with the folder to make, if the folder that `path` is in does not exist.
void expect_parent_folder(const std::filesystem::path& path);

/// Makes the folder `path`, if it does not exist. Throws as expect_parent_folder(), and io where the
/// system refuses.
void make_folder(const std::filesystem::path& path);

}  // namespace batchfs
