// Zarr metadata: .zmetadata, .zgroup, .zarray, .zattrs, zarr.json with and without consolidated
// metadata. Its arrays, dimensions and CF decoding are followed up to the point where values would
// be read.

#include "engine/dataset/dataset.h"
#include "engine/zarr/hierarchy.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/engine/store/memory_store.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace batchfs;
  Input input(data, size);
  const auto store = std::make_shared<MemoryStore>();
  // Files, each its key and its text, ended by NUL.
  while (!input.empty()) {
    const std::string key = input.text();
    const std::string text = input.text();
    if (is_key(key)) store->set(key, text);
  }
  attempt([&] {
    const Hierarchy hierarchy = open_hierarchy(*store);
    for (const auto& [path, metadata] : hierarchy.arrays) {
      attempt([&] { Array(store, std::make_shared<const ArrayMetadata>(metadata)); });
    }
    const Dataset dataset(store, hierarchy);
  });
  return 0;
}
