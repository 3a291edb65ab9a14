#pragma once
// A reference set (kerchunk, VirtualiZarr) as a store: keys of a Zarr store, and where their bytes
// lie in other files (NetCDF, HDF5, Zarr stores).
//
// A key that the set does not have is missing. A key whose file is not there, or is shorter, is an
// Error, never missing. Files are read below the set's own directory, and where the user allowed it:
// see VirtualPlaces.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/store/references/reference_table.h"
#include "engine/store/store.h"
#include "engine/store/virtual/address_queries.h"
#include "engine/store/virtual/virtual_options.h"

namespace batchfs::references {

/// Where the keys of a set come from. Thread-safe.
class References {
 public:
  struct Found {
    Target target;
    std::shared_ptr<const void> holder;  // of the bytes that `target` views; null: this
  };
  using Outcome = std::variant<std::optional<Found>, std::exception_ptr>;
  using Done = std::function<void(Outcome)>;

  virtual ~References() = default;
  /// `done` is called once, possibly before this returns. Its Errors may lack the place.
  virtual void find(const std::string& key, Done done) = 0;
  /// The file of the set, in its folder, that locates the bytes of a key and that is read while the
  /// set is in use; empty: none, digest() covers all of it.
  virtual std::string document_of(const std::string&) const { return {}; }
  virtual std::vector<Store::Entry> list(const std::string& prefix) = 0;
  virtual bool can_list() const { return true; }
  /// Names the whole contents; empty where that is not known.
  virtual std::string digest() const { return {}; }
  /// Bytes of the memory budget.
  virtual std::uint64_t memory() const = 0;
  virtual std::vector<Store::Counter> counters() const { return {}; }
  virtual ReferenceTable::Problems problems() const { return {}; }
  /// Prefixes of files, for a refusal to propose.
  virtual std::vector<std::pair<std::string, std::string>> folders(const std::string&) const {
    return {};
  }
};

/// The target of `key` in `table`, or its Error.
References::Outcome outcome_of(const ReferenceTable& table, std::string_view key,
                               std::shared_ptr<const void> holder);

/// All in memory, like a JSON set.
std::shared_ptr<References> references_of(std::shared_ptr<const ReferenceTable> table,
                                          std::string digest, const std::string& where);

struct ReferencePlaces {
  /// The directory of the set: relative names begin there.
  std::shared_ptr<Store> own;
  /// Opens a place outside of it that the user allowed to read.
  std::function<std::shared_ptr<Store>(const std::string& url)> open;
  VirtualOptions outside;
  /// Where `own` and the opened stores find queries of web addresses. Null: those are
  /// not_supported.
  std::shared_ptr<AddressQueries> queries = nullptr;
};

/// `url` is the set's own.
std::shared_ptr<Store> open_reference_store(std::string url, std::shared_ptr<References> references,
                                            const ReferencePlaces& places);

/// Keys of a reference set that cannot be read, and why, as a hierarchy's problems; empty for other
/// stores.
ReferenceTable::Problems problems_of_references(const Store& store);

}  // namespace batchfs::references
