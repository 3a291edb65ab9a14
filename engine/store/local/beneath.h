#pragma once
// Opening files below a directory, without leaving it.
//
// Any user who can write into a store can place symbolic links in it. A link is followed as long as
// it stays below the store's root; one that leads outside is an error that names it, unless links
// were allowed to lead anywhere. The kernel resolves the path (openat2(2), RESOLVE_BENEATH); where
// it is too old, or a sandbox forbids the call, each component is opened on its own and links are
// resolved here.

#include <filesystem>
#include <string>

#include "engine/base/descriptor.h"

namespace batchfs {

/// Thread-safe.
class Beneath {
 public:
  enum class Links {
    inside,    // links lead to places below the root, or fail
    anywhere,  // links are followed as the system does
  };
  enum class Resolver {
    automatic,  // the kernel, or by hand where it cannot
    by_hand,    // for tests
  };

  /// `root` is the user's path: links in it are followed. For a root that cannot be opened,
  /// descriptor() is -1, with errno.
  Beneath(std::filesystem::path root, Links links, Resolver resolver = Resolver::automatic);

  const std::filesystem::path& root() const { return root_; }
  int descriptor() const { return directory_.get(); }

  /// open(2) of `path`, relative to the root. The descriptor is -1, with errno, when that fails.
  /// Throws access_denied for a link that leads outside.
  Descriptor open(const std::string& path, int flags) const;

 private:
  Descriptor open_in_kernel(const std::string& path, int flags) const;
  Descriptor open_by_hand(const std::string& path, int flags) const;

  const std::filesystem::path root_;
  const Descriptor directory_;
  const Links links_;
  const Resolver resolver_;
};

}  // namespace batchfs
