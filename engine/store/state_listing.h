#pragma once
// A store that lists the states of its objects (Store::state): many for a request.

#include <cstdint>
#include <functional>
#include <string>

namespace batchfs {

class StateListing {
 public:
  /// `key` and `state` as those of Store::state(). False ends the listing.
  using Visit = std::function<bool(const std::string& key, std::uint64_t state)>;
  /// Calls `visit` for each object below `prefix`, at any depth, in any order. False, and no call,
  /// where the store's listings do not contain what Store::state() returns: then each object must
  /// be requested. Blocks. Throws as Store::state().
  virtual bool list_states(const std::string& prefix, const Visit& visit) = 0;

 protected:
  ~StateListing() = default;
};

}  // namespace batchfs
