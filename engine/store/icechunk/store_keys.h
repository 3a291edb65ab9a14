#pragma once
// The keys of a store that an Icechunk repository stands for: those of Zarr version 3.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace batchfs::icechunk {

inline constexpr std::string_view kDocumentName = "zarr.json";

/// The path that a document's key names; nullopt for other keys.
std::optional<std::string_view> document_path(std::string_view key);

/// Views its key.
struct ChunkName {
  std::string_view path;
  std::vector<std::uint32_t> index;
};

/// "a/b/c/0/1": the chunk (0, 1) of "a/b". Also of a folder of chunks, "a/b/c/0". nullopt for other
/// keys.
std::optional<ChunkName> chunk_name(std::string_view key);

}  // namespace batchfs::icechunk
