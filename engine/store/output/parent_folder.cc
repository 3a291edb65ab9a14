#include "engine/store/output/parent_folder.h"

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/system_error.h"

namespace batchfs {

void expect_parent_folder(const std::filesystem::path& path) {
  std::filesystem::path normal = path.lexically_normal();
  if (!normal.has_filename()) normal = normal.parent_path();  // "out/" is "out"
  const std::filesystem::path folder = normal.parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::exists(folder, error) || error) return;
  throw Error(
      ErrorCode::not_found,
      fmt::format("the folder '{}' does not exist; make it first, with mkdir -p", folder.string()),
      path.string());
}

void make_folder(const std::filesystem::path& path) {
  expect_parent_folder(path);
  std::error_code error;
  std::filesystem::create_directory(path, error);
  if (error)
    throw Error(ErrorCode::io,
                fmt::format("making the folder: {}", describe_system_error(error.value())),
                path.string());
}

}  // namespace batchfs
