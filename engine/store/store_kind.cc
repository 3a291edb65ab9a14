#include "engine/store/store_kind.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <utility>

#include "engine/base/strings.h"

namespace batchfs {

namespace {

using namespace std::string_view_literals;

constexpr std::pair<std::string_view, StoreKind> kKindMagic[] = {
    {"\x89HDF\r\n\x1a\n"sv, StoreKind::hdf5},
    {"CDF\x01"sv, StoreKind::netcdf3},
    {"CDF\x02"sv, StoreKind::netcdf3},
    {"CDF\x05"sv, StoreKind::netcdf3},
    {"GRIB"sv, StoreKind::grib},
    {"II*\0"sv, StoreKind::tiff},
    {"MM\0*"sv, StoreKind::tiff},
    {"II+\0"sv, StoreKind::tiff},
    {"MM\0+"sv, StoreKind::tiff},
    {"PAR1"sv, StoreKind::parquet},
    {"PK\x03\x04"sv, StoreKind::zip},
    {"ICE\xf0\x9f\xa7\x8a"
     "CHUNK"sv,
     StoreKind::icechunk},
};

constexpr std::pair<std::string_view, StoreKind> kEndings[] = {
    {".nc", StoreKind::hdf5},    {".nc4", StoreKind::hdf5},  {".h5", StoreKind::hdf5},
    {".hdf5", StoreKind::hdf5},  {".grib", StoreKind::grib}, {".grb", StoreKind::grib},
    {".grib2", StoreKind::grib}, {".grb2", StoreKind::grib}, {".tif", StoreKind::tiff},
    {".tiff", StoreKind::tiff},
};

/// The name of the kind, and how to get at its values.
std::pair<std::string_view, std::string_view> words(StoreKind kind) {
  constexpr std::string_view kConvert = "open it with xarray and write a Zarr copy with to_zarr()";
  constexpr std::string_view kReference =
      "open it through references, which kerchunk or VirtualiZarr makes of it, or write a Zarr "
      "copy "
      "with xarray's to_zarr()";
  switch (kind) {
    case StoreKind::icechunk:
      return {"an Icechunk repository without a branch main, or from before Icechunk 0.1.3",
              "name a branch with --branch, or write it again with a newer Icechunk"};
    case StoreKind::kerchunk_json:
      return {"a kerchunk reference set (JSON)", "name the file itself as the store"};
    case StoreKind::kerchunk_parquet:
      return {"a kerchunk reference set (Parquet)",
              "name its directory, the one with .zmetadata, as the store"};
    case StoreKind::n5:
      return {"an N5 store", "write a Zarr copy of it"};
    case StoreKind::zarr_v1:
      return {"a store of Zarr format 1", "write it again as format 2 or 3"};
    case StoreKind::hdf5:
      return {"a NetCDF-4 or HDF5 file", kReference};
    case StoreKind::netcdf3:
      return {"a NetCDF file", kReference};
    case StoreKind::grib:
      return {"a GRIB file",
              "open it with xarray's engine \"cfgrib\" and write a Zarr copy with to_zarr()"};
    case StoreKind::tiff:
      return {"a TIFF file", "open it with rioxarray and write a Zarr copy with to_zarr()"};
    case StoreKind::parquet:
      return {"a Parquet file",
              "for a reference set, name its directory, the one with .zmetadata, as the store"};
    case StoreKind::zip:
      return {"a zip archive", "give it a name that ends in .zip, if it holds a Zarr store"};
  }
  return {"another kind of store", kConvert};
}

}  // namespace

std::optional<StoreKind> kind_of_file(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()),
                              std::min(head.size(), kKindBytes));
  for (const auto& [magic, kind] : kKindMagic)
    if (text.starts_with(magic)) return kind;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || (text[first] != '{' && text[first] != '['))
    return std::nullopt;
  for (const std::string_view key :
       {"\"refs\"", ".zgroup\"", ".zarray\"", ".zmetadata\"", "zarr.json\""})
    if (text.find(key) != std::string_view::npos) return StoreKind::kerchunk_json;
  return std::nullopt;
}

std::optional<StoreKind> kind_of_directory(const std::vector<std::string>& names) {
  const auto has = [&names](std::initializer_list<std::string_view> all) {
    return std::all_of(all.begin(), all.end(), [&](std::string_view name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    });
  };
  for (const std::string_view third : {"repo", "refs/", "transactions/"})
    if (has({"snapshots/", "manifests/", third})) return StoreKind::icechunk;
  if (has({"attributes.json"})) return StoreKind::n5;
  if (has({"meta", "attrs"})) return StoreKind::zarr_v1;
  return std::nullopt;
}

std::optional<StoreKind> kind_of_name(std::string_view url) {
  std::string name(url.substr(0, url.find_first_of("?#")));
  name = to_lower(std::move(name));
  for (const auto& [ending, kind] : kEndings)
    if (name.ends_with(ending)) return kind;
  return std::nullopt;
}

Error unread_kind(StoreKind kind, std::string where) {
  const auto [name, advice] = words(kind);
  std::string why = "this is ";
  why.append(name).append(", which batchfs does not read; ").append(advice);
  return Error(ErrorCode::not_supported, why, std::move(where));
}

void refuse_other_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return;
  std::ifstream file(path, std::ios::binary);
  std::vector<char> head(kKindBytes);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  if (const auto kind = kind_of_file(std::as_bytes(std::span(head))))
    throw unread_kind(*kind, path);
}

}  // namespace batchfs
