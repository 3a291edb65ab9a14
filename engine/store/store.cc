#include "engine/store/store.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "engine/base/budget.h"
#include "engine/base/limits.h"
#include "engine/base/printable.h"
#include "engine/store/cache/disk_cache.h"
#include "engine/store/cloud/cloud_store.h"
#include "engine/store/cloud/http_store.h"
#include "engine/store/decompression.h"
#include "engine/store/fingerprint.h"
#include "engine/store/icechunk/icechunk_store.h"
#include "engine/store/icechunk/signs.h"
#include "engine/store/local/local.h"
#include "engine/store/object_versions.h"
#include "engine/store/place.h"
#include "engine/store/references/parquet_references.h"
#include "engine/store/references/reference_json.h"
#include "engine/store/references/reference_store.h"
#include "engine/store/store_kind.h"
#include "engine/store/uri.h"
#include "engine/store/virtual/address_queries.h"
#include "engine/store/wrong_bytes.h"
#include "engine/store/zip/zip_store.h"

namespace batchfs {

namespace {

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

/// A file that holds a store is an object of the place that it is in.
struct ObjectUrl {
  std::string folder, name;  // no name: it cannot be an object
};

/// The query after '?' in an address belongs to every request; in the name of an object '?' is an
/// ordinary character.
ObjectUrl split_object_url(const std::string& scheme, const std::string& url) {
  const bool is_web = scheme == "http" || scheme == "https";
  const bool has_query = is_web || scheme.starts_with("az") || scheme.starts_with("abfs");
  const std::size_t end = has_query ? std::min(url.find_first_of("?#"), url.size()) : url.size();
  const std::size_t slash = url.rfind('/', end);
  if (slash == std::string::npos || slash <= scheme.size() + 2) return {};
  const std::string name = url.substr(slash + 1, end - std::min(end, slash + 1));
  return {url.substr(0, slash) + url.substr(end), is_web ? percent_decode(name) : name};
}

std::shared_ptr<Store> open_remote_store(const std::string& scheme, const std::string& url,
                                         const StoreConfig& config) {
  const bool is_web = scheme == "http" || scheme == "https";
  if (const ObjectUrl parts = split_object_url(scheme, url); parts.name.ends_with(".zip"))
    return open_zip_store(open_remote_store(scheme, parts.folder, config), parts.name,
                          config.memory);
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
                          .versions = version_options(config, VersionOwner::cache)});
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

/// Path.as_uri() of Python writes a space as %20; a path is read as it is, as fsspec reads it.
void refuse_encoded(const std::string& path) {
  std::error_code ignored;
  const std::string decoded = percent_decode(path);
  if (decoded == path || std::filesystem::exists(path, ignored) ||
      !std::filesystem::exists(decoded, ignored))
    return;
  throw Error(
      ErrorCode::not_found,
      fmt::format("no such file or directory; a path has no %XX: write '{}'", printable(decoded)),
      path);
}

std::shared_ptr<Store> open_plain_store(const std::string& url, const StoreConfig& config) {
  const std::size_t colon = url.find("://");
  const std::string scheme = colon == std::string::npos ? "" : url.substr(0, colon);
  if (!scheme.empty() && scheme != "file") return open_remote_store(scheme, url, config);
  std::string path = scheme.empty() ? url : path_of_file_url(url);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  refuse_encoded(path);
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

/// Opens a place outside of a store that refers to it: without the user's options for the store
/// itself that name a server or identify the user.
std::function<std::shared_ptr<Store>(const std::string&)> opener_outside(
    const StoreConfig& config) {
  StoreConfig outside = config;
  outside.cache_dir.clear();
  outside.endpoint.clear();
  outside.region.clear();
  outside.profile.clear();
  outside.redirects = outside.revalidate = false;
  return [outside](const std::string& place) {
    StoreConfig own = outside;
    // Objects of the same name in two places have versions of their own.
    own.version_space = lasting_digest(fmt::format("{} {}", outside.version_space, place));
    return open_plain_store(place, own);
  };
}

std::uint64_t memory_of(const StoreConfig& config) {
  return config.memory != 0 ? config.memory : default_memory_budget();
}

/// Does a file of this name hold the JSON of a reference set, perhaps compressed?
bool is_json_name(std::string_view name) {
  constexpr std::string_view kEndings[] = {".json", ".json.gz", ".json.zst", ".json.zstd"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [name](std::string_view ending) { return name.ends_with(ending); });
}

/// The set in a JSON text: half of the memory is for the text, half for its contents.
std::shared_ptr<Store> open_json_set(Buffer bytes, std::shared_ptr<Store> folder,
                                     const std::string& name, const StoreConfig& config) {
  const std::string url = folder->url() + "/" + name;
  try {
    if (compression_of(bytes.span()) != FileCompression::none) {
      Buffer compressed = std::exchange(bytes, {});
      bytes = decompress_file(compressed.span(), memory_of(config) / 2);
      compressed.discard();
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    auto table = references::parse_reference_json(text, memory_of(config) / 2);
    std::string digest = fingerprint(text);
    bytes.discard();
    return references::open_reference_store(
        url, references::references_of(std::move(table), std::move(digest), url),
        {std::move(folder), opener_outside(config), config.outside, config.queries});
  } catch (Error& error) {
    throw with_wrong_bytes(error, bytes.span()).at(url);
  }
}

/// The set of Parquet files in a directory; nullptr where there is none.
std::shared_ptr<Store> open_parquet_set(std::shared_ptr<Store> folder, const StoreConfig& config) {
  const ByteRange whole{0, UINT64_MAX, false, memory_of(config) / 2};
  const std::optional<Buffer> bytes = folder->read(".zmetadata", whole);
  if (!bytes) return nullptr;
  const std::string url = folder->url();
  try {
    auto set = references::open_parquet_references(
        folder, {reinterpret_cast<const char*>(bytes->data()), bytes->size()}, memory_of(config));
    if (set == nullptr) return nullptr;
    return references::open_reference_store(
        url, std::move(set),
        {std::move(folder), opener_outside(config), config.outside, config.queries});
  } catch (Error& error) {
    throw error.at(url);
  }
}

/// The reference set whose file `url` names; nullptr for a URL that cannot be one.
std::shared_ptr<Store> open_reference_file(const std::string& url, const StoreConfig& config) {
  const ByteRange whole{0, UINT64_MAX, false, memory_of(config) / 2};
  const std::size_t colon = url.find("://");
  const std::string scheme = colon == std::string::npos ? "" : url.substr(0, colon);
  if (!scheme.empty() && scheme != "file") {
    const ObjectUrl parts = split_object_url(scheme, url);
    if (!is_json_name(parts.name)) return nullptr;
    auto folder = open_remote_store(scheme, parts.folder, config);
    std::optional<Buffer> bytes = folder->read(parts.name, whole);
    return bytes ? open_json_set(std::move(*bytes), std::move(folder), parts.name, config)
                 : nullptr;
  }
  const std::filesystem::path file = scheme.empty() ? url : path_of_file_url(url);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return nullptr;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  const std::string name = file.filename().string();
  // This file is the user's word, and may be a link to anywhere.
  const auto holder = open_local_store(folder, {.follow_links = true});
  const auto head = holder->read(name, {0, kKindBytes});
  if (!head) return nullptr;
  const std::string_view text(reinterpret_cast<const char*>(head->data()), head->size());
  const bool is_compressed = compression_of(head->span()) != FileCompression::none;
  if (kind_of_file(head->span()) != StoreKind::kerchunk_json &&
      !(is_json_name(name) && (is_compressed || references::may_be_reference_json(text))))
    return nullptr;
  std::optional<Buffer> bytes = holder->read(name, whole);
  if (!bytes) return nullptr;
  return open_json_set(std::move(*bytes),
                       open_local_store(folder, {.follow_links = config.follow_links,
                                                 .versions = version_options(config)}),
                       name, config);
}

/// nullptr where there is none.
std::shared_ptr<Store> open_repository(std::shared_ptr<Store> objects, const std::string& url,
                                       const StoreConfig& config, RepositorySigns signs) {
  const bool is_archive = objects->is_fixed();
  StoreConfig fresh = config;
  fresh.cache_dir.clear();
  fresh.versions.reset();
  fresh.revalidate = true;
  auto entry = is_archive ? objects : open_plain_store(url, fresh);
  return open_icechunk_store(
      {std::move(entry), std::move(objects), opener_outside(config), config.outside},
      config.icechunk, memory_of(config), std::move(signs));
}

void refuse_versions(const StoreConfig& config, const Store& store) {
  if (config.icechunk.names_a_version())
    throw Error(ErrorCode::invalid_argument,
                "--branch, --tag, --snapshot and --as-of are for Icechunk repositories, which "
                "this is not",
                store.url());
}

}  // namespace

std::shared_ptr<Store> open_store(const std::string& url, const StoreConfig& given) {
  StoreConfig config = given;
  if (config.queries == nullptr) config.queries = std::make_shared<AddressQueries>();
  const auto [kind, place] = split_kind(usual_place(url));
  const bool is_repository = kind == kIcechunkPlace, is_set = kind == kReferencePlace;
  if (place.empty()) throw Error(ErrorCode::invalid_argument, "the store's path is empty");
  if (!is_repository) {
    if (auto set = open_reference_file(place, config)) {
      refuse_versions(config, *set);
      return set;
    }
  }
  std::shared_ptr<Store> store = open_plain_store(place, config);
  if (is_set) {
    if (auto set = open_parquet_set(store, config)) return set;
    throw Error(ErrorCode::not_found,
                "no reference set: neither a JSON file nor a folder whose .zmetadata has "
                "record_size",
                store->url());
  }
  const bool asked =
      is_repository || config.icechunk.names_a_version() || !config.icechunk.pinned.empty();
  if (!asked && !store->is_local()) return store;  // see find_repository()
  if (auto repository = open_repository(store, place, config, {})) return repository;
  if (is_repository)
    throw Error(ErrorCode::not_found,
                "no Icechunk repository: neither repo nor refs/branch.main/ref.json is there",
                store->url());
  refuse_versions(config, *store);
  return store;
}

std::shared_ptr<Store> find_repository(std::shared_ptr<Store> store, const std::string& url,
                                       const StoreConfig& config, RepositorySigns signs) {
  if (store->revision()) return nullptr;
  if (!store->is_local())  // open_store() has looked there
    if (auto repository = open_repository(store, url, config, std::move(signs))) return repository;
  return open_parquet_set(store, config);
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
