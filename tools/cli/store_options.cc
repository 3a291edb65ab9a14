#include "tools/cli/store_options.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>

#include <fmt/format.h>
#include <malloc.h>

#include "engine/base/budget.h"
#include "engine/base/buffer_pool.h"
#include "engine/base/strings.h"
#include "engine/base/system_error.h"
#include "engine/store/cloud/cache_access.h"
#include "engine/store/icechunk/signs.h"
#include "engine/store/place.h"
#include "engine/store/references/reference_store.h"
#include "engine/store/virtual/address_queries.h"
#include "engine/view/sources_spec.h"
#include "tools/cli/given_options.h"
#include "tools/cli/groups.h"
#include "tools/cli/places.h"
#include "tools/cli/repository_options.h"
#include "tools/cli/stores/consolidated_above.h"
#include "tools/cli/stores/named_arrays.h"
#include "tools/cli/stores/named_stores.h"
#include "tools/cli/stores/store_settings.h"

namespace batchfs {

CLI::Option* add_size_option(CLI::App& app, const std::string& name, std::uint64_t& bytes,
                             const std::string& help, std::uint64_t least) {
  const auto set = [name, &bytes, least](const std::string& text) {
    const std::optional<std::uint64_t> size = parse_size(text);
    if (!size || *size == 0) {
      throw CLI::ValidationError(name, "'" + text + "' is not a size such as 256M or 8G");
    }
    if (*size < least)
      throw CLI::ValidationError(
          name, "'" + text + "' is too little: the minimum is " + format_size(least));
    bytes = *size;
  };
  return app.add_option_function<std::string>(name, set, help)->type_name("SIZE");
}

void add_store_options(CLI::App& app, StoreOptions& options) {
  app.add_option(
         "STORE", options.store,
         "the store: a directory or a .zip (path or file://), http(s)://, s3://, gs://, az://; a "
         "Zarr store, an Icechunk repository or a kerchunk reference set (its .json file or its "
         "directory of Parquet files)")
      ->required()
      ->type_name("");
  add_engine_options(app, options);
}

CLI::ValidationError no_named_store(const std::string& text) {
  return CLI::ValidationError("--store",
                              "'" + text +
                                  "' is not NAME=URL, as imerg=s3://bucket/b.zarr; a name has "
                                  "letters, digits, '_', '-' and '.'");
}

void add_other_stores(CLI::App& app, StoreOptions& options) {
  const auto add = [&options](const std::vector<std::string>& given) {
    for (const std::string& text : given) {
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos || equals + 1 == text.size()) throw no_named_store(text);
      try {
        add_named_stores(options, text.substr(0, equals), text.substr(equals + 1));
      } catch (const Error& error) {
        throw CLI::ValidationError("--store", error.why());
      }
    }
  };
  app.add_option_function<std::vector<std::string>>(
         "--store", add,
         "a further store, which views name in \"sources\"; may be given several times; "
         "'era=/data/y{1979..2020}.zarr' are several stores")
      ->type_name("NAME=URL")
      ->allow_extra_args(false)
      ->group("Several stores");
  const auto set = [&options](const std::vector<std::string>& given) {
    for (const std::string& text : given) {
      try {
        add_store_setting(options, text);
      } catch (const Error& error) {
        throw CLI::ValidationError("--store-option", error.why());
      }
    }
  };
  app.add_option_function<std::vector<std::string>>(
         "--store-option,--store_option", set,
         "an option of one further store, as rain.anon or rain.region=eu-west-1; may be given "
         "several times")
      ->type_name("NAME.OPTION=VALUE")
      ->allow_extra_args(false)
      ->group("Several stores");
}

void add_engine_options(CLI::App& app, StoreOptions& options) {
  const std::string local = "Memory and processors", remote = "Remote stores";
  add_size_option(app, "--memory", options.memory, "use at most this much memory (256M, 8G)",
                  kMinMemory)
      ->group(local);
  app.add_option("--threads", options.threads,
                 "decode with this many threads (default: one per core)")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N")
      ->group(local);
  app.add_flag("--follow-links,--follow_links", options.config.follow_links,
               "follow symbolic links that lead out of the store")
      ->group("Local stores");
  app.add_option("--group", options.group,
                 "read this group of the store (default: the root; a view may name its own)")
      ->type_name("PATH")
      ->group("Groups");
  app.add_option("--array", options.arrays,
                 "look for this array or group, a path from the group: where a web server cannot "
                 "list and the metadata is not consolidated; may be given several times")
      ->type_name("PATH")
      ->allow_extra_args(false)
      ->group("Groups");
  app.add_option("--level", options.level,
                 "take this level of an OME-Zarr image: its number, or the one nearest to a "
                 "resolution, x=0.5um (a view may name its own)")
      ->type_name("N|AXIS=DISTANCE")
      ->group("Groups");
  add_repository_options(app, options.config.icechunk, options.config.outside);
  app.add_option("--cache-dir", options.config.cache_dir, "cache fetched objects in this directory")
      ->type_name("DIR")
      ->group(remote);
  app.add_flag("--cache-trust", options.config.cache_trust,
               "use cached chunks without asking the store whether they changed")
      ->group(remote);
  add_size_option(app, "--cache-size", options.config.cache_size,
                  "size of the cache at most (default: the free space of the disk)")
      ->group(remote);
  const auto set_caches = [&options](const std::vector<std::string>& urls) {
    try {
      options.config.via = parse_cache_urls(urls);
    } catch (const Error& error) {
      throw CLI::ValidationError(error.what());
    }
  };
  app.add_option_function<std::vector<std::string>>(
         "--via", set_caches,
         "read chunks through these shared caches, HTTP proxies such as nginx (default: "
         "BATCHFS_VIA); none: through no cache")
      ->delimiter(',')
      ->type_name("URL[,URL...]")
      ->allow_extra_args(false)
      ->group(remote);
  app.add_flag("--via-verify,--via_verify", options.config.via_verify,
               "compare what shared caches send with the checksums that the store names")
      ->group(remote);
  app.add_option("--timeout", options.config.timeout,
                 "give up on a request after this many seconds (default: 30)")
      ->check(CLI::Range(0.001, 3600.0).description(""))
      ->type_name("SECONDS")
      ->group(remote);
  app.add_option("--retries", options.config.retries,
                 "repeat a failed request this often (default: 3)")
      ->check(CLI::Range(0, 100).description(""))
      ->type_name("N")
      ->group(remote);
  app.add_flag("--anon", options.config.anon, "read without credentials")->group(remote);
  app.add_flag("--requester-pays,--requester_pays", options.config.requester_pays,
               "agree to pay for requests (s3)")
      ->group(remote);
  const auto set_missing = [&options](const std::string& answer) {
    options.config.missing = answer == "403" ? MissingAnswers::also_403 : MissingAnswers::only_404;
  };
  app.add_option_function<std::string>(
         "--missing", set_missing,
         "answer that means a missing chunk: 404 alone, or 403 too (default: determined by a "
         "request for an object that cannot exist)")
      ->check(CLI::IsMember({"404", "403"}).description(""))
      ->type_name("404|403")
      ->group(remote);
  app.add_option("--endpoint", options.config.endpoint, "the server of an s3-compatible service")
      ->type_name("URL")
      ->group(remote);
  app.add_option("--region", options.config.region, "the service's region")
      ->type_name("NAME")
      ->group(remote);
  app.add_option("--profile", options.config.profile, "the profile of the credentials file")
      ->type_name("NAME")
      ->group(remote);
}

/// Share of --memory for the versions of objects that were read: 3/64 for all stores together, with
/// a floor that holds 49152 objects.
std::uint64_t version_memory(std::uint64_t memory, std::size_t stores) {
  constexpr std::uint64_t kFloor = 3 << 19;
  return std::max(memory / 64 * 3 / stores, kFloor);
}

/// A number of the store's own in a table of versions, whatever the order of the options.
std::uint64_t version_space(const StoreOptions& options, const std::string& name) {
  return 1 + static_cast<std::uint64_t>(
                 std::count_if(options.others.begin(), options.others.end(),
                               [&](const StoreOptions::Named& each) { return each.name < name; }));
}

/// Share of --memory for freed buffers that this process keeps to reuse: an eighth, at most 64 MiB,
/// since chunks of 17 MB are decoded again and again (W1); or a sixteenth, if that is more, since 64
/// chunks may be in flight from a store.
std::uint64_t pooled_of(std::uint64_t memory) {
  constexpr std::uint64_t kMany = 64 << 20, kMax = 512 << 20;
  return std::max<std::uint64_t>(
      {kMinPooled, std::min(memory / 8, kMany), std::min(memory / 16, kMax)});
}

/// Adds the problems that are not known yet from metadata documents.
void add_problems(Hierarchy& hierarchy, references::ReferenceTable::Problems problems) {
  std::set<std::string> known;
  for (const auto& [key, why] : hierarchy.problems) known.insert(key);
  for (auto& problem : problems)
    if (!known.contains(problem.first)) hierarchy.problems.push_back(std::move(problem));
}

/// The hierarchy of a store, or of the repository that it turns out to be.
std::shared_ptr<const Hierarchy> read_hierarchy(std::shared_ptr<Store>& store,
                                                const std::string& url, const StoreConfig& config) {
  RepositorySigns signs;
  const auto read = [&] {
    Hierarchy hierarchy = open_hierarchy(*store, config.memory, &signs);
    add_problems(hierarchy, references::problems_of_references(*store));
    return std::make_shared<const Hierarchy>(std::move(hierarchy));
  };
  const auto from_above = [&]() -> std::shared_ptr<const Hierarchy> {
    if (store->can_list()) return nullptr;
    StoreConfig elsewhere = config;
    elsewhere.versions = nullptr;  // keys there equal keys of this store
    auto above = hierarchy_from_above(url, config.memory, [&elsewhere](const std::string& place) {
      return open_store(place, elsewhere);
    });
    return above ? std::make_shared<const Hierarchy>(std::move(*above)) : nullptr;
  };
  try {
    auto hierarchy = read();
    if (hierarchy->complete || !hierarchy->ome.empty()) return hierarchy;
    auto above = from_above();
    return above != nullptr ? above : hierarchy;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_supported && error.code() != ErrorCode::not_found) throw;
    // A repository is not supported as a Zarr store; without any object, it is not a repository.
    const bool may_be_repository = error.code() == ErrorCode::not_supported;
    if (!may_be_repository)
      if (auto above = from_above()) return above;
    if (auto repository = find_repository(store, url, config, std::move(signs)))
      store = std::move(repository);
    else if (auto above = may_be_repository ? from_above() : nullptr)
      return above;
    else
      throw;
  }
  return read();
}

/// Finds the arrays of --array. A missing one is an error for any store.
void find_arrays(OpenedStore& opened, const std::vector<std::string>& typed) {
  std::vector<std::string> paths;
  for (const std::string& name : typed) {
    const std::string path = without_slashes(name);
    paths.push_back(opened.group.empty() ? path : opened.group + "/" + path);
  }
  if (!paths.empty()) find_named(opened, paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    if (opened.hierarchy->arrays.contains(path) || opened.hierarchy->groups.contains(path))
      continue;
    const std::string problem = opened.hierarchy->problem_of(path);
    throw Error(problem.empty() ? ErrorCode::not_found : ErrorCode::corrupt,
                problem.empty() ? "there is no array or group '" + path + "'" : problem,
                "--array " + typed[i]);
  }
}

std::uint64_t OpenedStore::held_memory() const {
  std::uint64_t bytes =
      hierarchy->memory - std::min(hierarchy->memory, kFreeMetadata) + store->held_memory();
  for (const auto& [name, other] : others) bytes += other->held_memory();
  return bytes;
}

std::vector<std::shared_ptr<Store>> OpenedStore::stores() const {
  std::vector<std::shared_ptr<Store>> result{store};
  for (const auto& [name, other] : others) result.push_back(other->store);
  return result;
}

std::string OpenedStore::snapshot_id() const {
  std::string id = hierarchy->snapshot_id;
  for (const auto& [name, other] : others)
    id += fmt::format(" {}={} {}", name, other->store->url(), other->snapshot_id());
  return id;
}

std::uint64_t memory_of(const StoreOptions& options) {
  return options.memory != 0 ? options.memory : default_memory_budget();
}

/// Opens a store of --store. Options that choose a place inside of the first store, or its version,
/// do not apply to it.
OpenedStore open_other(const StoreOptions& options, const StoreOptions::Named& named) {
  StoreOptions other = options;
  other.store = named.url;
  other.group.clear();
  other.level.clear();
  other.arrays.clear();
  other.others.clear();
  other.series.clear();
  other.settings.clear();
  other.given = given_for_others(options.given);
  other.config.version_memory = version_memory(memory_of(options), 1 + options.others.size());
  other.config.icechunk = {};
  other.config.icechunk.pinned = named.pinned;
  apply_store_settings(options, named.name, other);
  // Objects of the same name in two stores have separate versions.
  other.config.version_space = version_space(options, named.name);
  try {
    return open_zarr(other);
  } catch (Error& error) {
    throw error.at("--store " + named.name);
  }
}

std::uint64_t engine_memory(const StoreOptions& options) {
  const std::uint64_t memory = memory_of(options);
  return memory - (pooled_of(memory) - kMinPooled);
}

OpenedStore open_zarr(const StoreOptions& options) {
  OpenedStore opened;
  const std::string place = usual_place(options.store);
  const std::uint64_t memory = memory_of(options);
  keep_pooled(pooled_of(memory));
  opened.budget = engine_memory(options);
  StoreConfig config = options.config;
  config.memory = memory;
  config.queries = std::make_shared<AddressQueries>();
  if (config.version_memory == 0)
    config.version_memory = version_memory(memory, 1 + options.others.size());
  try {
    opened.store = open_store(place, config);
    opened.hierarchy = read_hierarchy(opened.store, place, config);
  } catch (const Error& error) {
    // A place inside the store names itself.
    const std::string url = opened.store != nullptr ? opened.store->url() : place;
    if (error.where() != url && error.where() != place && !error.where().empty()) throw;
    if (error.where().empty() && opened.store == nullptr)
      throw;  // the URL as typed may hold secrets
    throw Error(error.code(), error.why(),
                "the store '" + (error.where().empty() ? url : error.where()) + "'");
  }
  ::malloc_trim(0);  // memory freed after parsing
  if (!options.level.empty()) opened.level = parse_level(options.level, "--level");
  opened.memory = memory;
  if (!options.group.empty() && !opened.hierarchy->complete)
    find_named(opened, {without_slashes(options.group)});
  if (!options.group.empty())
    opened.group = find_group(*opened.hierarchy, options.group, "--group " + options.group);
  find_arrays(opened, options.arrays);
  opened.series = options.series;
  opened.given = options.given;
  check_store_settings(options);
  for (const StoreOptions::Named& named : options.others)
    opened.others.emplace(named.name, std::make_shared<OpenedStore>(open_other(options, named)));
  if (!options.config.cache_dir.empty())
    check_outside(places_of(opened), options.config.cache_dir, "directory of the cache");
  return opened;
}

namespace {

Error read_failure(int error, const std::string& where) {
  const ErrorCode code = error == ENOENT   ? ErrorCode::not_found
                         : error == EACCES ? ErrorCode::access_denied
                                           : ErrorCode::io;
  return Error(code, describe_system_error(error), where);
}

}  // namespace

std::string read_text(std::FILE* file, const std::string& where) {
  constexpr std::size_t kMaxFileBytes = 16 << 20;
  std::string text;
  char block[64 << 10];
  std::size_t n;
  while ((n = std::fread(block, 1, sizeof block, file)) > 0) {
    text.append(block, n);
    if (text.size() > kMaxFileBytes) {
      throw Error(ErrorCode::invalid_argument, "larger than 16 MB: not a view file", where);
    }
  }
  if (std::ferror(file) != 0) throw read_failure(errno, where);
  return text;
}

std::string read_text_file(const std::string& path, const std::string& what) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             std::fclose);
  const std::string where = what.empty() ? path : what + " '" + path + "'";
  if (file == nullptr) throw read_failure(errno, where);
  return read_text(file.get(), where);
}

}  // namespace batchfs
