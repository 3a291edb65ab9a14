#include "engine/store/icechunk/manifest_cache.h"

#include "engine/store/icechunk/repository.h"

namespace batchfs::icechunk {

namespace {

/// Assumed size of manifests whose size the snapshot does not contain.
constexpr std::uint64_t kSupposedBytes = 1 << 20;

DecodedIndex decode_manifest(const std::string& key, const std::optional<Buffer>& file,
                             const IndexCache::Limits& limits) {
  const std::string name = key.substr(key.rfind('/') + 1);
  if (!file) throw removed("manifest " + name);
  auto manifest =
      Manifest::parse(file->span(), *parse_object_id(name), limits.payload, limits.memory);
  const std::uint64_t memory = manifest->memory();
  return {std::move(manifest), memory};
}

}  // namespace

ManifestCache::ManifestCache(std::shared_ptr<Store> store, std::shared_ptr<const Snapshot> snapshot,
                             IndexCache::Limits limits)
    : snapshot_(std::move(snapshot)),
      cache_(std::move(store), limits, "manifest",
             [limits](const std::string& key, const std::optional<Buffer>& file) {
               return decode_manifest(key, file, limits);
             }) {}

void ManifestCache::get(const ObjectId& id, Done done) {
  const Snapshot::ManifestFile* file = snapshot_->manifest_file(id);
  const bool is_known = file != nullptr && file->bytes != 0;
  cache_.get(manifest_key(id), is_known ? file->bytes : kSupposedBytes,
             [done = std::move(done)](IndexCache::Outcome outcome) {
               if (const auto* error = std::get_if<std::exception_ptr>(&outcome))
                 return done(*error);
               done(std::static_pointer_cast<const Manifest>(
                   std::get<std::shared_ptr<const void>>(std::move(outcome))));
             });
}

}  // namespace batchfs::icechunk
