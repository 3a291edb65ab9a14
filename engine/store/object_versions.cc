#include "engine/store/object_versions.h"

#include <fmt/format.h>

namespace batchfs {

ObjectVersions::ObjectVersions(Options options)
    : warn_(std::move(options.warn)),
      table_(options.table ? std::move(options.table) : std::make_shared<VersionTable>()),
      space_(std::move(options.space)) {
  table_->limit(options.memory);
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

void read_past_caches(Store& store, const std::string& key, const ByteRange& range, ReadDone done) {
  store.read_version_async(key, range, kNoVersion, [done = std::move(done)](auto outcome) {
    if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(std::move(*error));
    done(std::move(std::get<Store::VersionedRead>(outcome).bytes));
  });
}

ReadDone as_versioned(Store::VersionedDone done) {
  return [done = std::move(done)](ReadOutcome outcome) {
    if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(std::move(*error));
    Store::VersionedRead read;
    read.bytes = std::move(std::get<std::optional<Buffer>>(outcome));
    done(std::move(read));
  };
}

ObjectVersions::Options version_options(const StoreConfig& config, VersionOwner owner) {
  ObjectVersions::Options options;
  if (config.version_memory != 0) options.memory = config.version_memory;
  options.warn = config.warn;
  options.table = config.versions;
  options.space = static_cast<char>(owner) + std::to_string(config.version_space);
  return options;
}

}  // namespace batchfs
