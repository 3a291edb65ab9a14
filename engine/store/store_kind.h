#pragma once
// Kinds of stores and files that batchfs does not read, recognised by names and first bytes, so
// that the refusal names them. A kind is a phrase with its article: "an Icechunk repository".

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace batchfs {

enum class StoreKind {
  icechunk,       // and not one that can be read
  kerchunk_json,  // VirtualiZarr writes it, too
  kerchunk_parquet,
  n5,
  zarr_v1,
  hdf5,  // NetCDF-4 too
  netcdf3,
  grib,
  tiff,
  parquet,
  zip,  // a name that does not end in .zip
};

/// First bytes of a file that kind_of_file() wants to see.
inline constexpr std::size_t kKindBytes = 64 << 10;
/// Kind of a file that was passed in place of a store; nullopt when its first bytes match none.
std::optional<StoreKind> kind_of_file(std::span<const std::byte> head);
/// Kind of a store without Zarr metadata at its root, by the names there, those of directories with
/// a slash appended; nullopt when they match none.
std::optional<StoreKind> kind_of_directory(const std::vector<std::string>& names);
/// Kind by the ending of a URL, for servers that have nothing at the keys below it.
std::optional<StoreKind> kind_of_name(std::string_view url);

/// not_supported: the kind of the place's contents, and what to do.
Error unread_kind(StoreKind kind, std::string where);
/// Throws unread_kind() for a regular file of a known kind.
void refuse_other_file(const std::string& path);

}  // namespace batchfs
