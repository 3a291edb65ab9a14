#include "engine/store/virtual/address_queries.h"

#include <utility>

#include "engine/store/fingerprint.h"

namespace batchfs {

namespace {

constexpr std::string_view kMark = "?query-";
constexpr std::size_t kDigits = 32;
/// Memory of a node of the table beside its text.
constexpr std::size_t kNode = 128;

std::string place(const std::string& store, const std::string& key) { return store + "/" + key; }

}  // namespace

std::string AddressQueries::key(const std::string& store, const std::string& path,
                                std::string_view query) {
  std::string key = path + std::string(kMark) + fingerprint(query);
  std::string name = place(store, key);
  const std::lock_guard lock(mutex_);
  if (new_.contains(name)) return key;
  bytes_ += kNode + name.size() + query.size();
  new_.emplace(std::move(name), query);
  if (bytes_ > memory_) {
    old_ = std::exchange(new_, {});
    bytes_ = 0;
  }
  return key;
}

std::optional<AddressQueries::Address> AddressQueries::find(const std::string& store,
                                                            const std::string& key) const {
  if (key.size() < kMark.size() + kDigits) return std::nullopt;
  const std::size_t mark = key.size() - kDigits - kMark.size();
  if (key.compare(mark, kMark.size(), kMark) != 0) return std::nullopt;
  const std::string name = place(store, key);
  const std::lock_guard lock(mutex_);
  for (const Queries* queries : {&new_, &old_})
    if (const auto it = queries->find(name); it != queries->end())
      return Address{key.substr(0, mark), it->second};
  return std::nullopt;
}

}  // namespace batchfs
