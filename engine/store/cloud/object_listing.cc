#include "engine/store/cloud/object_listing.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/limits.h"

namespace batchfs {

std::vector<Store::Entry> list_objects(ObjectService& service, ObjectRequests& requests,
                                       const std::string& prefix) {
  std::vector<Store::Entry> entries;
  ListingMemory memory;
  std::string continuation;
  for (int page = 0; page < kMaxListingPages; ++page) {
    const std::string where = prefix.empty() ? service.url() : service.url() + "/" + prefix;
    ObjectService::Page answer;
    const auto response = requests.send_and_wait(
        {[&] { return service.list(prefix, continuation); }, {}, where, true});
    if (!response) throw Error(ErrorCode::not_found, "the store does not exist", service.url());
    try {
      answer = service.parse_list(prefix, *response);
    } catch (Error& error) {
      throw error.at(where);
    }
    for (Store::Entry& entry : answer.entries)
      if (!entry.name.empty() && entry.name.find('/') == std::string::npos) {
        memory.add(entry, where);
        entries.push_back(std::move(entry));
      }
    if (answer.continuation.empty()) {
      // An object and a prefix of one name are a directory, as in a file system.
      std::sort(entries.begin(), entries.end(), [](const Store::Entry& a, const Store::Entry& b) {
        return a.name != b.name ? a.name < b.name : a.is_prefix > b.is_prefix;
      });
      const auto same = [](const Store::Entry& a, const Store::Entry& b) {
        return a.name == b.name;
      };
      entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
      return entries;
    }
    if (answer.continuation == continuation)
      throw Error(ErrorCode::io, "the listing does not come to an end", where);
    continuation = answer.continuation;
  }
  throw Error(ErrorCode::no_memory,
              fmt::format("the listing takes more than {} requests", kMaxListingPages), prefix);
}

}  // namespace batchfs
