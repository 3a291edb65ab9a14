#pragma once
// Reference sets as Parquet: a directory with the metadata of all arrays in `.zmetadata`, and the
// references of each array in files of a fixed number of rows, `ARRAY/refs.0.parq`, which are read
// when one of their chunks is first looked up.
//
// Source: fsspec/kerchunk docs/source/spec.rst, "Parquet references", and fsspec's
// LazyReferenceMapper, whose names of files count where the two differ.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/store/references/reference_store.h"
#include "engine/store/references/reference_table.h"

namespace batchfs::references {

/// The set whose `.zmetadata` is `consolidated`; nullptr for consolidated metadata of a Zarr store.
/// `folder` holds the set. `memory`: bytes of the budget. Throws invalid_argument, no_memory.
std::shared_ptr<References> open_parquet_references(std::shared_ptr<Store> folder,
                                                    std::string_view consolidated,
                                                    std::uint64_t memory);

/// A file of references: keys are the numbers of rows. Rows without file and bytes are missing.
/// `memory`: half of the budget, for the file and all that it becomes. Throws corrupt,
/// not_supported, no_memory with a budget that suffices, and corrupt for more than `rows`.
std::shared_ptr<const ReferenceTable> parse_parquet_records(std::span<const std::byte> file,
                                                            std::uint64_t rows,
                                                            std::uint64_t memory);

}  // namespace batchfs::references
