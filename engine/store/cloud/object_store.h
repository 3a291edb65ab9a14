#pragma once
// A store over HTTP requests: the common part of S3, GCS, Azure and plain web servers.
//
// Several callers that want the same bytes share one request; near ranges of an object that are
// wanted in the same moment become one. Answers are checked to contain the requested bytes, and to
// be of the same object as before: a changed one is Error{stale}. A read that fails for good is an
// Error, never missing.
//
// Shared caches may have objects that were replaced in the store. Before an object of a cache is
// used for the first time, the store is asked whether it still has this version, which brings no
// bytes if so; unless the caches are trusted. Metadata always comes from the store.

#include <memory>

#include "engine/store/cloud/object_requests.h"
#include "engine/store/cloud/object_service.h"
#include "engine/store/object_versions.h"
#include "engine/store/state_listing.h"
#include "engine/store/store.h"

namespace batchfs {

class ObjectReads;

class ObjectStore final : public Store, public StateListing {
 public:
  /// The client is shared, so that a service can fetch its tokens with it.
  ObjectStore(std::shared_ptr<ObjectService> service, std::shared_ptr<HttpClient> client,
              RequestOptions options, ObjectVersions::Options versions = {});
  /// Reads that are not done end with Error{interrupted}. Not to be called by a read's callback.
  ~ObjectStore() override;

  std::string url() const override;
  std::optional<Buffer> read(const std::string& key, ByteRange range = {}) override;
  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override;
  void read_async(const std::string& key, ByteRange range, ReadDone done) override;
  void read_version_async(const std::string& key, ByteRange range, const std::string& known,
                          VersionedDone done) override;
  std::optional<std::uint64_t> size(const std::string& key) override;
  std::optional<std::uint64_t> state(const std::string& key) override;
  /// Some servers name versions in another way in listings: the first object is requested, too.
  bool list_states(const std::string& prefix, const Visit& visit) override;
  std::vector<Entry> list(const std::string& prefix) override;
  bool can_list() const override;
  void stop() override;
  std::optional<Speed> speed() const override;
  std::vector<Counter> counters() const override;

 private:
  const std::shared_ptr<ObjectService> service_;
  const std::unique_ptr<ObjectReads> reads_;
};

}  // namespace batchfs
