#pragma once
// Reading an object of a store in all ways, for the fuzz targets of stores.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/store/store.h"
#include "tests/fuzz/fuzz.h"

namespace batchfs {

/// The whole of a small object and its last bytes, which must agree.
inline void read_all(Store& store, const std::string& key) {
  attempt([&] {
    const auto size = store.size(key);
    if (!size || *size > (64 << 10)) return;
    const auto whole = store.read(key);
    must(whole && whole->size() == *size);
    std::vector<std::byte> part(std::min<std::uint64_t>(*size, 100));
    const auto got = store.read_into(key, *size - part.size(), part);
    must(got && got->bytes == part.size());
    must(std::equal(part.begin(), part.end(), whole->data() + (*size - part.size())));
  });
}

}  // namespace batchfs
