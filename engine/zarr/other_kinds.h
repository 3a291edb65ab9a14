#pragma once
// Contents of a place that cannot be read as a Zarr store, or as one of its nodes.

#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/store/store.h"
#include "engine/store/store_kind.h"
#include "engine/zarr/document_reader.h"

namespace batchfs {

std::optional<StoreKind> kind_by_listing(const std::vector<Store::Entry>& entries);

/// For servers that cannot list. Only once it is clear that this is not a Zarr store: requests that
/// a good one does not cost.
std::optional<StoreKind> kind_by_probing(const Store& store, DocumentReader& reader);

/// Is it the error of a document that is not what it should be?
bool is_broken(const Error& error);
/// The error of the root's zarr.json, with the document of format 2 that is beside it.
Error broken_root(Store& store, const Error& broken);
/// The error of a zarr.json that cannot be read beside `name`, a document of format 2: zarr-python
/// reads zarr.json, and fails.
Error broken_beside(const Error& broken, const std::string& name);

}  // namespace batchfs
