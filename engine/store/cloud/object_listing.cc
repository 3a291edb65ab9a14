#include "engine/store/cloud/object_listing.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/limits.h"
#include "engine/store/fingerprint.h"
#include "engine/store/http/response_checks.h"

namespace batchfs {

namespace {

constexpr int kMaxEmptyPages = 1000;  // in a row: of a listing that passes removed objects

}  // namespace

std::vector<Store::Entry> list_objects(ObjectService& service, ObjectRequests& requests,
                                       const std::string& prefix) {
  if (!service.can_list())
    throw Error(ErrorCode::not_supported, "this store cannot list what is in it", service.url());
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

std::optional<std::uint64_t> state_of(const std::string& version,
                                      std::optional<std::uint64_t> size) {
  const std::string identity = identity_of(version, size);
  return identity.empty() ? std::nullopt : std::optional(lasting_digest(identity));
}

bool list_versions(ObjectService& service, ObjectRequests& requests, const std::string& prefix,
                   const VisitVersion& visit) {
  if (!service.list_versions(prefix, "")) return false;
  const std::string where = prefix.empty() ? service.url() : service.url() + "/" + prefix;
  std::string continuation;
  int empty_pages = 0;
  for (bool is_first = true;; is_first = false) {
    std::optional<HttpResponse> response;
    try {
      response = requests.send_and_wait(
          {[&] { return *service.list_versions(prefix, continuation); }, {}, where, true});
    } catch (const Error& error) {
      if (is_first && error.code() == ErrorCode::access_denied) return false;
      throw;
    }
    if (!response) throw Error(ErrorCode::not_found, "the store does not exist", service.url());
    ObjectService::VersionPage page;
    try {
      page = service.parse_versions(prefix, *response);
    } catch (Error& error) {
      throw error.at(where);
    }
    for (const auto& object : page.objects)
      if (!visit(object)) return true;
    if (page.continuation.empty()) return true;
    empty_pages = page.objects.empty() ? empty_pages + 1 : 0;
    if (page.continuation == continuation || empty_pages > kMaxEmptyPages)
      throw Error(ErrorCode::io, "the listing does not come to an end", where);
    continuation = std::move(page.continuation);
  }
}

}  // namespace batchfs
