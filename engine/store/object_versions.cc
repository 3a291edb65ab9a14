#include "engine/store/object_versions.h"

#include <algorithm>

#include <fmt/format.h>
#include <xxhash.h>

namespace batchfs {

ObjectVersions::ObjectVersions(Options options)
    : warn_(std::move(options.warn)),
      table_(options.table ? std::move(options.table) : std::make_shared<VersionTable>()),
      space_(options.space) {
  table_->limit(options.memory);
}

std::uint64_t ObjectVersions::digest(std::string_view version) {
  if (version.empty()) return kUnknown;
  return std::max<std::uint64_t>(1, XXH3_64bits(version.data(), version.size()));
}

bool ObjectVersions::accept(std::string_view key, std::uint64_t version) {
  const VersionTable::Accepted accepted = table_->accept(key, version, space_);
  const bool no_room = accepted == VersionTable::Accepted::no_room;
  if (no_room && not_kept_.fetch_add(1, std::memory_order_relaxed) == 0 && warn_)
    warn_(fmt::format(
        "the versions of {} objects fill the memory for them: changes of further objects "
        "are not noticed; pass a larger --memory",
        table_->size()));
  return accepted != VersionTable::Accepted::other_version;
}

std::vector<Store::Counter> ObjectVersions::counters() const {
  return {{"object_versions", table_->size()},
          {"object_versions_not_kept", not_kept_.load(std::memory_order_relaxed)}};
}

Error ObjectVersions::changed(const std::string& where) {
  return Error(ErrorCode::stale,
               "the object has changed since it was first read; mount, or run the command, "
               "again to see the new one",
               where);
}

Error ObjectVersions::vanished(const std::string& where) {
  return Error(ErrorCode::stale,
               "the object has gone since it was first read; mount, or run the command, again "
               "to see what is there",
               where);
}

ObjectVersions::Options version_options(const StoreConfig& config, std::uint64_t space) {
  ObjectVersions::Options options;
  if (config.version_memory != 0) options.memory = config.version_memory;
  options.warn = config.warn;
  options.table = config.versions;
  options.space = space + config.version_space;
  return options;
}

}  // namespace batchfs
