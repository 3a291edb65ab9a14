#include "engine/store/store.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "engine/base/budget.h"
#include "engine/base/limits.h"
#include "engine/store/cache/disk_cache.h"
#include "engine/store/cloud/cloud_store.h"
#include "engine/store/cloud/http_store.h"
#include "engine/store/icechunk/icechunk_store.h"
#include "engine/store/local/local.h"
#include "engine/store/object_versions.h"
#include "engine/store/store_kind.h"
#include "engine/store/uri.h"
#include "engine/store/zip/zip_store.h"

namespace batchfs {

namespace {

/// The cache's objects in a table of versions, beside those of the store that it keeps objects of.
constexpr std::uint64_t kCacheVersions = 1;

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::shared_ptr<Store> open_remote_store(const std::string& scheme, const std::string& url,
                                         const StoreConfig& config) {
  const bool is_web = scheme == "http" || scheme == "https";
  // An archive is an object of the place that holds it. What follows '?' in an address belongs to
  // every request; in the name of an object it is a character as any other.
  const bool has_query = is_web || scheme.starts_with("az") || scheme.starts_with("abfs");
  const std::size_t end = has_query ? std::min(url.find_first_of("?#"), url.size()) : url.size();
  const std::size_t slash = url.rfind('/', end);
  const std::string place = url.substr(0, end);
  if (place.ends_with(".zip") && slash > scheme.size() + 2) {
    const std::string name = place.substr(slash + 1);
    return open_zip_store(open_remote_store(scheme, url.substr(0, slash) + url.substr(end), config),
                          is_web ? percent_decode(name) : name, config.memory);
  }
  CloudStore opened =
      is_web ? CloudStore{open_http_store(url, config), ""} : open_cloud_store(url, config);
  if (config.cache_dir.empty()) return opened.store;
  return open_disk_cache(std::move(opened.store),
                         {.directory = config.cache_dir,
                          .limit = config.cache_size,
                          .trust = config.cache_trust,
                          .wait_for_disk = config.cache_waits,
                          .warn = config.warn,
                          .realm = opened.realm,
                          .versions = version_options(config, kCacheVersions)});
}

}  // namespace

void Store::read_async(const std::string& key, ByteRange range, ReadDone done) {
  ReadOutcome outcome;
  try {
    outcome = read(key, range);
  } catch (...) {
    outcome = std::current_exception();
  }
  done(std::move(outcome));
}

std::optional<std::uint64_t> Store::state(const std::string&) { return std::nullopt; }

void Store::read_version_async(const std::string& key, ByteRange range, const std::string&,
                               VersionedDone done) {
  read_async(key, range, [done = std::move(done)](ReadOutcome outcome) {
    if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(std::move(*error));
    VersionedRead read;
    read.bytes = std::move(std::get<std::optional<Buffer>>(outcome));
    done(std::move(read));
  });
}

namespace {

std::shared_ptr<Store> open_plain_store(const std::string& url, const StoreConfig& config) {
  const std::size_t colon = url.find("://");
  const std::string scheme = colon == std::string::npos ? "" : url.substr(0, colon);
  if (!scheme.empty() && scheme != "file") return open_remote_store(scheme, url, config);
  std::string path = scheme.empty() ? url : url.substr(colon + 3);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path.ends_with(".zip") && !is_directory(path)) {
    const std::filesystem::path file = path;
    // The one object that is read there is the path that the user typed: it may be a link to
    // anywhere.
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
    return open_zip_store(
        open_local_store(folder, {.follow_links = true, .versions = version_options(config)}),
        file.filename().string(), config.memory);
  }
  refuse_other_file(path);
  return open_local_store(
      path, {.follow_links = config.follow_links, .versions = version_options(config)});
}

constexpr std::string_view kIcechunk = "icechunk+";

/// nullptr where there is none.
std::shared_ptr<Store> open_repository(std::shared_ptr<Store> objects, const std::string& url,
                                       const StoreConfig& config) {
  const bool is_archive = objects->is_fixed();
  StoreConfig fresh = config;
  fresh.cache_dir.clear();
  fresh.versions.reset();
  fresh.revalidate = true;
  // Of what the user said for the repository, nothing that names a server or who asks it.
  StoreConfig outside = fresh;
  outside.endpoint.clear();
  outside.region.clear();
  outside.profile.clear();
  outside.redirects = outside.revalidate = false;
  const auto open = [outside](const std::string& place) {
    return open_plain_store(place, outside);
  };
  auto entry = is_archive ? objects : open_plain_store(url, fresh);
  return open_icechunk_store({std::move(entry), std::move(objects), open}, config.icechunk,
                             config.memory != 0 ? config.memory : default_memory_budget());
}

}  // namespace

std::shared_ptr<Store> open_store(const std::string& url, const StoreConfig& config) {
  const bool is_repository = url.starts_with(kIcechunk);
  const std::string place = is_repository ? url.substr(kIcechunk.size()) : url;
  if (place.empty()) throw Error(ErrorCode::invalid_argument, "the store's path is empty");
  std::shared_ptr<Store> store = open_plain_store(place, config);
  const bool asked =
      is_repository || config.icechunk.names_a_version() || !config.icechunk.pinned.empty();
  if (!asked && !store->is_local()) return store;  // see find_repository()
  if (auto repository = open_repository(store, place, config)) return repository;
  if (is_repository)
    throw Error(ErrorCode::not_found,
                "no Icechunk repository: neither repo nor refs/branch.main/ref.json is there",
                store->url());
  if (config.icechunk.names_a_version())
    throw Error(ErrorCode::invalid_argument,
                "--branch, --tag, --snapshot and --as-of are for Icechunk repositories, which "
                "this is not",
                store->url());
  return store;
}

std::shared_ptr<Store> find_repository(std::shared_ptr<Store> store, const std::string& url,
                                       const StoreConfig& config) {
  if (store->is_local() || store->revision()) return nullptr;  // open_store() has looked
  return open_repository(std::move(store), url, config);
}

void ListingMemory::add(const Store::Entry& entry, const std::string& where) {
  constexpr std::size_t kWithinString = 15;
  used_ += sizeof entry + (entry.name.size() > kWithinString ? entry.name.size() + 17 : 0);
  ++entries_;
  if (used_ > kMaxListing)
    throw Error(ErrorCode::no_memory,
                fmt::format("the directory has more than {} entries, more than are listed; "
                            "consolidate the store's metadata "
                            "(zarr.consolidate_metadata)",
                            entries_ - 1),
                where);
}

bool is_key(std::string_view key) {
  if (key.find('\0') != std::string_view::npos) return false;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view component = key.substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..") return false;
    if (end == key.size()) return true;
    begin = end + 1;
  }
}

void check_key(const std::string& key) {
  if (!is_key(key)) throw Error(ErrorCode::invalid_argument, "not a usable key", key);
}

}  // namespace batchfs
