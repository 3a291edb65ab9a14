// Icechunk repositories: entry, snapshots, manifests, and every chunk that they name. The input is
// the repository's files one after the other: key, NUL, size (32 bits), bytes.

#include "engine/store/icechunk/icechunk_store.h"
#include "tests/fuzz/read_all.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace {

constexpr std::uint64_t kMemory = 16 << 20;

void walk(Store& store, const std::string& prefix, int depth) {
  const std::string begin = prefix.empty() ? "" : prefix + "/";
  for (const Store::Entry& entry : store.list(prefix)) {
    const std::string key = begin + entry.name;
    must(is_key(key));
    if (!entry.is_prefix) {
      read_all(store, key);
    } else if (entry.name == "c") {
      read_all(store, key);
      for (const char* chunk : {"/0", "/1", "/7", "/0/0", "/1/0", "/0/1", "/0/0/0", "/2/1/0"})
        read_all(store, key + chunk);
    }
    if (entry.is_prefix && depth < 6) attempt([&] { walk(store, key, depth + 1); });
  }
}

}  // namespace
}  // namespace batchfs

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace batchfs;
  const auto parent = std::make_shared<MemoryStore>();
  Input input(data, size);
  while (!input.empty()) {
    const std::string key = input.text();
    const auto bytes = input.bytes(input.number<std::uint32_t>());
    if (is_key(key)) parent->set(key, std::vector<std::byte>(bytes.begin(), bytes.end()));
  }
  attempt([&] {
    const auto open = [parent](const std::string&) { return parent; };
    const auto store = open_icechunk_store(
        {parent, parent, open, {.places = {"s3://example-archive/"}}}, {}, kMemory);
    if (store == nullptr) return;
    icechunk_log(*store, 100);
    walk(*store, "", 0);
  });
  return 0;
}
