#pragma once
// Files outside of a store that its chunks lie in, and which of them may be read.
//
// The writer of a store chooses its references. So a file is read only in the store's own place, or
// below a prefix that the user allowed. A store for such a prefix gets none of the user's options
// for the referring store (endpoint, region, profile), and none of that store's own settings
// (endpoints, headers): servers other than the prefix's own are read where the user names them, as
// PREFIX=URL.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/store/store.h"
#include "engine/store/virtual/address_queries.h"
#include "engine/store/virtual/virtual_file.h"
#include "engine/store/virtual/virtual_options.h"

namespace batchfs {

class VirtualPlaces {
 public:
  using Open = std::function<std::shared_ptr<Store>(const std::string& url)>;

  /// How the referring store spells and names things.
  struct Manner {
    std::string whole = "repository";  // messages say "outside of the repository"
    std::string list = "manifest";     // and "as the manifest says"
    /// Locations are percent-encoded; else, but for web addresses, each character is itself.
    bool encoded = true;
    /// Prefixes that the store names itself: name (or empty) and URL. A refusal proposes them.
    std::vector<std::pair<std::string, std::string>> containers = {};
    /// Where the stores that are opened find the queries of web addresses that are not encoded.
    /// Null: such addresses are not_supported.
    std::shared_ptr<AddressQueries> queries = nullptr;
  };

  /// `own` is the referring store's place. `open` opens a prefix that was allowed. Throws
  /// invalid_argument for options that are not prefixes.
  VirtualPlaces(std::shared_ptr<Store> own, const VirtualOptions& options, Manner manner,
                Open open);

  /// Are all files that may be read on this machine?
  bool are_local() const { return are_local_; }

  struct File {
    std::shared_ptr<Store> store;
    std::string key;
    std::string shown;  // its URL, without secrets
  };
  /// Throws access_denied, naming the option, for a location that is not allowed; invalid_argument
  /// for one that cannot be a file; and what opening throws.
  File find(std::string_view location);

  /// Reads exactly `range`, which is not from the end. A file that is not there, shorter, or
  /// another one than was referred to is an Error. `done` is called once, possibly before this
  /// returns.
  /// `past_caches`: see kNoVersion.
  void read_async(const VirtualFile& file, ByteRange range, ReadDone done,
                  bool past_caches = false);

  /// Store::state() of a file. For a remote file it is requested once: then another version of it
  /// is stale. Blocks. Throws as find().
  std::optional<std::uint64_t> state(std::string_view location);
  /// Does check() compare?
  bool checks() const { return checks_; }
  /// Throws stale when a file is evidently not the one that was referred to.
  void check(const VirtualFile& file, const std::string& shown,
             const Store::VersionedRead& read) const;

  /// Calls Store::stop() on the stores that were opened.
  void stop();

  /// The errors of a referring store for a file that is missing, or that ends too early.
  static Error gone(const std::string& shown);
  static bool is_gone(const Error& error);
  Error too_short() const;

 private:
  struct Place {
    std::string prefix;  // ends in '/'
    std::string url;     // that is read for it
    std::shared_ptr<Store> store;
  };

  std::string absolute(std::string_view location) const;
  Error denied(const std::string& location) const;

  const Manner manner_;
  const Open open_;
  const bool checks_;
  bool are_local_ = true;
  std::mutex mutex_;           // guards the stores of places_, and states_
  std::vector<Place> places_;  // longest prefix first
  std::map<std::string, std::uint64_t, std::less<>> states_;  // of remote files that exist
};

/// A store's place, as locations name it; ends in '/'.
std::string place_of_store(const Store& store);

/// "s3://bucket/" of "s3://bucket/a/b"; empty for text that is not a URL.
std::string authority_of(const std::string& url);

}  // namespace batchfs
