#pragma once
// Copies an array of strings, or bytes, of any length: labels. It is held in memory as a whole, and
// keeps its chunks.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/store/output/output_store.h"
#include "engine/write/output_array.h"

namespace batchfs {

/// A chunk as the codec vlen-utf8 of numcodecs stores it: the number of strings, then each with its
/// length before it, in 32-bit numbers.
std::string encode_strings(const std::vector<std::string>& strings);

struct CopiedStrings {
  std::uint64_t objects = 0, stored_bytes = 0;
};

/// Blocking. Throws as StringArray::read() and OutputStore::put().
CopiedStrings copy_strings(const std::shared_ptr<Store>& store,
                           const std::shared_ptr<const ArrayMetadata>& source,
                           const OutputArray& array, OutputStore& output);

}  // namespace batchfs
