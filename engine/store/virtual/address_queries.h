#pragma once
// Web addresses with a query: a signature, or the name of the file.
//
// A query may be a secret, so keys and messages do not have it: such a file's key ends in a digest
// of its query, and two addresses that differ in their queries are two files.

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace batchfs {

/// Thread-safe.
class AddressQueries {
 public:
  /// A query stays known until at least this many bytes of others have been added.
  explicit AddressQueries(std::size_t memory = std::size_t{32} << 20) : memory_(memory) {}

  /// The key of the file at `path` ("a/b.nc") with `query` ("sig=x", without '?') in the store
  /// whose URL is `store`.
  std::string key(const std::string& store, const std::string& path, std::string_view query);

  struct Address {
    std::string path;   // not encoded
    std::string query;  // as it was written
  };
  /// The address of a key. nullopt for a key that key() did not make.
  std::optional<Address> find(const std::string& store, const std::string& key) const;

 private:
  using Queries = std::unordered_map<std::string, std::string>;  // by store and key

  const std::size_t memory_;
  mutable std::mutex mutex_;  // guards the fields below
  Queries new_, old_;
  std::size_t bytes_ = 0;  // of new_
};

}  // namespace batchfs
