#pragma once
// The places of opened stores, which batchfs never writes to.

#include <string>
#include <vector>

#include "engine/store/output/apart.h"
#include "tools/cli/store_options.h"

namespace batchfs {

/// The places of all stores, for check_apart() and check_outside().
inline std::vector<std::string> places_of(const OpenedStore& opened) {
  std::vector<std::string> places;
  for (const auto& store : opened.stores()) places.push_back(store->url());
  return places;
}

}  // namespace batchfs
