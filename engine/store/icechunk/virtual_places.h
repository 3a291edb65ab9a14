#pragma once
// Files outside of an Icechunk repository that its chunks lie in, and which of them may be read.
//
// What a repository refers to is its writer's word. So it is read only where that is the
// repository's own place, or below a prefix that the user allowed. A store for such a prefix gets
// nothing of what the user said for the repository itself (endpoint, region, profile), and
// nothing of what the repository says (endpoints, headers): servers other than the prefix's own
// are read where the user names them, as PREFIX=URL.

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/store/icechunk/manifest.h"
#include "engine/store/icechunk/options.h"
#include "engine/store/store.h"

namespace batchfs {

class VirtualPlaces {
 public:
  using Open = std::function<std::shared_ptr<Store>(const std::string& url)>;

  /// `own` is the repository's place, `containers` the prefixes that its configuration names: name
  /// and URL. `open` opens a prefix that was allowed. Throws invalid_argument for options that are
  /// no prefixes.
  VirtualPlaces(std::shared_ptr<Store> own, const IcechunkOptions& options,
                std::vector<std::pair<std::string, std::string>> containers, Open open);

  /// Are all files that may be read on this machine?
  bool are_local() const { return are_local_; }

  struct File {
    std::shared_ptr<Store> store;
    std::string key;
    std::string shown;  // its URL, without secrets
  };
  /// Throws access_denied, naming the option, for what is not allowed; invalid_argument for what
  /// cannot be a file; and what opening throws.
  File find(std::string_view location);

  /// Throws stale when a file is not, as far as can be told, the one that was referred to.
  void check(const icechunk::VirtualFile& file, const std::string& shown,
             const Store::VersionedRead& read) const;

 private:
  struct Place {
    std::string prefix;  // ends in '/'
    std::string url;     // that is read for it
    std::shared_ptr<Store> store;
  };

  std::string absolute(std::string_view location) const;
  Error denied(const std::string& location) const;

  const std::vector<std::pair<std::string, std::string>> containers_;
  const Open open_;
  const bool checks_;
  bool are_local_ = true;
  std::mutex mutex_;           // guards the stores of places_
  std::vector<Place> places_;  // longest prefix first
};

/// The containers for virtual chunks that a repository's configuration names: name (or empty) and
/// URL. Throws corrupt.
std::vector<std::pair<std::string, std::string>> virtual_containers(icechunk::Bytes config);

}  // namespace batchfs
