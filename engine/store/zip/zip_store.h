#pragma once
// A zip archive as a store: the archive is an object of another store, on this machine or not.
//
// The archive's directory is read when it is opened and kept; a member is then one read of the
// other store, or two the first time that a part of it is wanted and where it begins is only known
// by its local header. Stored members are read by range; a compressed one is fetched whole,
// whatever part is wanted. Members that are read whole are checked against their CRC.
//
// Methods: stored and deflate, the methods of zarr-python's ZipStore. Others, and encrypted
// members, are refused by name when they are read.

#include <memory>
#include <string>

#include "engine/store/store.h"

namespace batchfs {

/// Throws not_found, corrupt, not_supported, and what reading `parent` throws. `memory`: bytes that
/// the archive's directory may take; 0: default_memory_budget(). Throws no_memory beyond.
std::shared_ptr<Store> open_zip_store(std::shared_ptr<Store> parent, std::string key,
                                      std::uint64_t memory = 0);

}  // namespace batchfs
