#pragma once
// The options of every command that opens a store, and opening it.

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "engine/base/limits.h"
#include "engine/store/store.h"
#include "engine/zarr/hierarchy.h"
#include "engine/zarr/ome/level.h"

namespace batchfs {

struct StoreOptions {
  std::string store;
  std::string group;                // as typed; empty: the root
  std::vector<std::string> arrays;  // of --array: paths from the group
  std::string level;                // of an OME-Zarr image, as typed; empty: not chosen
  struct Named {
    std::string name, url;
    std::string pinned = {};  // snapshot of an Icechunk repository to read
  };
  std::vector<Named> others;  // of --store: further stores that views may name
  /// For each --store NAME=URL with braces in the URL, which stands for several concatenated
  /// stores, their names among `others`. The series of STORE has an empty name.
  std::map<std::string, std::vector<std::string>> series;
  /// Pairs of --store-option: a store or a series, and "endpoint=URL" or "anon".
  std::vector<std::pair<std::string, std::string>> settings;
  /// Options that were given and change how the store is opened: name without dashes, values. See
  /// given_options.h; empty where no command is proposed.
  using Given = std::map<std::string, std::vector<std::string>>;
  Given given;
  std::uint64_t memory = 0;  // bytes; 0: half of the memory of the machine or the container
  int threads = 0;           // 0: one per core
  StoreConfig config;
};

/// Adds STORE and the options. `options` must outlive the parsing.
void add_store_options(CLI::App& app, StoreOptions& options);
/// `--store NAME=URL`, for commands that take a view.
void add_other_stores(CLI::App& app, StoreOptions& options);
/// The options alone: the names that `mount -o name=value` accepts, too.
void add_engine_options(CLI::App& app, StoreOptions& options);

/// Adds `--NAME SIZE` ("256M"); anything else, and less than `least` bytes, is wrong usage.
CLI::Option* add_size_option(CLI::App& app, const std::string& name, std::uint64_t& bytes,
                             const std::string& help, std::uint64_t least = 1);

/// Bytes for an engine: --memory, or its default, less the freed buffers that the process keeps
/// beyond kMinPooled.
std::uint64_t engine_memory(const StoreOptions& options);

struct OpenedStore {
  std::shared_ptr<Store> store;
  std::shared_ptr<const Hierarchy> hierarchy;
  std::string group;                 // of --group: a path of the hierarchy
  std::optional<LevelChoice> level;  // of --level
  std::uint64_t budget = 0;          // engine_memory()
  std::uint64_t memory = 0;          // limit for its metadata, in bytes
  /// Bytes of the memory budget that stay taken while it is open: metadata beyond kFreeMetadata,
  /// and the store's own limit.
  std::uint64_t held_memory() const;
  /// The stores of --store, by name.
  std::map<std::string, std::shared_ptr<OpenedStore>> others;
  std::map<std::string, std::vector<std::string>> series;  // as in StoreOptions
  StoreOptions::Given given;                               // as in StoreOptions
  /// Every store, this one first.
  std::vector<std::shared_ptr<Store>> stores() const;
  /// Identifies this store's metadata and that of the others: changes when any of them has changed.
  std::string snapshot_id() const;
};
OpenedStore open_zarr(const StoreOptions& options);

/// Reads an open file from its position to the end. Throws the errors of read_text_file; `where`
/// names it in errors.
std::string read_text(std::FILE* file, const std::string& where);

/// Reads a text file that the user named. Throws not_found, access_denied, io; invalid_argument
/// past 16 MiB. `what`, such as "the view file", names it in errors.
std::string read_text_file(const std::string& path, const std::string& what = "");

}  // namespace batchfs
