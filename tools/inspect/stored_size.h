#pragma once
// How many bytes an array takes in its store.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/store/store.h"

namespace batchfs {

/// Bytes of all objects below `path`, metadata included, like zarr-python's nbytes_stored(). Lists,
/// and requests the size of each object: for remote stores `threads` at a time. nullopt if the
/// store cannot list, the listing is too long, an object's size cannot be read, or `deadline`
/// passes.
std::optional<std::uint64_t> stored_size(
    Store& store, const std::string& path,
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max(),
    int threads = 1);

}  // namespace batchfs
