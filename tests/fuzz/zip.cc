// Zip archives: directory, listings, and every member that is small.

#include "engine/store/zip/zip_store.h"
#include "tests/fuzz/read_all.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace {

void walk(Store& store, const std::string& prefix, int depth) {
  for (const Store::Entry& entry : store.list(prefix)) {
    const std::string key = prefix.empty() ? entry.name : prefix + "/" + entry.name;
    must(is_key(key));
    if (entry.is_prefix) {
      if (depth < 8) walk(store, key, depth + 1);
      continue;
    }
    read_all(store, key);
  }
}

}  // namespace
}  // namespace batchfs

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace batchfs;
  const auto parent = std::make_shared<MemoryStore>();
  parent->set("a.zip", std::string_view(reinterpret_cast<const char*>(data), size));
  attempt([&] {
    const auto store = open_zip_store(parent, "a.zip");
    walk(*store, "", 0);
  });
  return 0;
}
