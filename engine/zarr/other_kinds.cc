#include "engine/zarr/other_kinds.h"

#include <fmt/format.h>

#include "engine/store/wrong_bytes.h"

namespace batchfs {

std::optional<StoreKind> kind_by_listing(const std::vector<Store::Entry>& entries) {
  std::vector<std::string> names;
  for (const Store::Entry& entry : entries)
    names.push_back(entry.is_prefix ? entry.name + "/" : entry.name);
  return kind_of_directory(names);
}

std::optional<StoreKind> kind_by_probing(const Store& store, DocumentReader& reader) {
  if (const auto kind = kind_of_name(store.url())) return kind;
  const auto attributes = reader.probe("attributes.json");
  if (attributes && attributes->is_object() && attributes->contains("n5")) return StoreKind::n5;
  return std::nullopt;
}

bool is_broken(const Error& error) {
  return error.code() == ErrorCode::corrupt || error.code() == ErrorCode::invalid_argument;
}

Error broken_root(Store& store, const Error& broken) {
  constexpr std::uint64_t kHead = 512;
  const auto head = store.read("zarr.json", {0, kHead});
  // A web page stands for every document that a server lacks.
  if (!head || !describe_wrong_bytes(head->span()).empty()) return broken;
  for (const char* name : {".zmetadata", ".zarray", ".zgroup"})
    if (store.size(name)) return broken_beside(broken, name);
  return broken;
}

Error broken_beside(const Error& broken, const std::string& name) {
  return Error(broken.code(),
               fmt::format("{}; zarr.json is read before {}, which is there too: repair it, or "
                           "remove it to read format 2",
                           broken.why(), name),
               broken.where());
}

}  // namespace batchfs
