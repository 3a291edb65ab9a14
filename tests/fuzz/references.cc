// Reference sets: a JSON text (first byte 0), perhaps compressed, or a file of references in
// Parquet (1), and every key that they list.

#include "engine/store/decompression.h"
#include "engine/store/references/parquet_references.h"
#include "engine/store/references/reference_json.h"
#include "engine/store/references/reference_store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace {

constexpr std::uint64_t kMemory = 16 << 20;
constexpr std::size_t kMostRead = 200;

void read_key(Store& store, const std::string& key) {
  attempt([&] {
    const auto size = store.size(key);
    must(size.has_value());
    if (*size > (64 << 10)) return;
    const auto whole = store.read(key);
    must(whole && whole->size() == *size);
    std::vector<std::byte> part(std::min<std::uint64_t>(*size, 10));
    const auto got = store.read_into(key, *size - part.size(), part);
    must(got && got->bytes == part.size());
    must(std::equal(part.begin(), part.end(), whole->data() + (*size - part.size())));
  });
}

void walk_keys(Store& store, const std::string& prefix, int depth, std::size_t& read) {
  const std::string begin = prefix.empty() ? "" : prefix + "/";
  for (const Store::Entry& entry : store.list(prefix)) {
    if (read > kMostRead) return;
    const std::string key = begin + entry.name;
    must(is_key(key));
    ++read;
    if (!entry.is_prefix)
      read_key(store, key);
    else if (depth < 6)
      attempt([&] { walk_keys(store, key, depth + 1, read); });
  }
}

void read_set(std::shared_ptr<const references::ReferenceTable> table) {
  const auto files = std::make_shared<MemoryStore>();
  for (const char* name : {"x.nc", "y.nc", "z/x.nc"}) files->set(name, std::string(1000, 'x'));
  const auto store = references::open_reference_store(
      "memory/r.json", references::references_of(std::move(table), "", "memory/r.json"),
      {files,
       [files](const std::string&) { return files; },
       {.places = {"s3://example-archive/"}}});
  std::size_t read = 0;
  walk_keys(*store, "", 0, read);
}

}  // namespace
}  // namespace batchfs

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace batchfs;
  if (size == 0) return 0;
  const bool is_parquet = data[0] != 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  attempt([&] {
    const auto bytes = std::as_bytes(std::span(text));
    if (is_parquet) {
      read_set(references::parse_parquet_records(bytes, 100'000, kMemory));
    } else if (compression_of(bytes) != FileCompression::none) {
      const Buffer plain = decompress_file(bytes, kMemory);
      must(plain.size() <= kMemory);
      read_set(references::parse_reference_json(
          {reinterpret_cast<const char*>(plain.data()), plain.size()}, kMemory));
    } else {
      read_set(references::parse_reference_json(text, kMemory));
    }
  });
  attempt([&] {
    const auto folder = std::make_shared<MemoryStore>();
    if (!is_parquet) references::open_parquet_references(folder, text, kMemory);
  });
  return 0;
}
