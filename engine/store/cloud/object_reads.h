#pragma once
// Reads of an object store in flight: which requests they share, and what their answers mean.
//
// Used by ObjectStore only, whose header describes its promises.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "engine/store/cloud/answer_versions.h"
#include "engine/store/cloud/object_listing.h"
#include "engine/store/cloud/object_requests.h"
#include "engine/store/cloud/object_service.h"
#include "engine/store/store.h"

namespace batchfs {

/// Thread-safe.
class ObjectReads {
 public:
  struct Part {
    Buffer bytes;
    std::optional<std::uint64_t> object_size;  // if the answer contained it
    std::string version;
    std::optional<std::int64_t> modified;
    bool unchanged = false;  // no bytes: the object has the version that was known
  };
  using PartOutcome = std::variant<std::optional<Part>, std::exception_ptr>;
  using PartDone = std::function<void(PartOutcome)>;

  ObjectReads(std::shared_ptr<ObjectService> service, std::shared_ptr<HttpClient> client,
              RequestOptions options, ObjectVersions::Options versions);
  ~ObjectReads() { stop(); }

  /// Reads that are not done end with Error{interrupted}, and so do later ones.
  void stop();

  /// With `known`, the object is sent only if it is another version; `past_caches`: no shared cache
  /// is asked. noexcept: read() waits for `done`, which must not be called when it has been
  /// unwound.
  void start(const std::string& key, const ByteRange& range, const std::string& known,
             PartDone done, bool past_caches = false) noexcept;
  std::optional<Part> read(const std::string& key, const ByteRange& range,
                           bool past_caches = false);
  std::optional<std::uint64_t> size(const std::string& key);

  std::vector<Store::Entry> list(const std::string& at) {
    return list_objects(*service_, requests_, at);
  }
  bool list_versions(const std::string& prefix, const VisitVersion& visit) {
    return batchfs::list_versions(*service_, requests_, prefix, visit);
  }
  /// Throws stale when the object has another version than when it was first read.
  void check_unchanged(const std::string& key, std::string_view version,
                       std::optional<std::uint64_t> size);

  std::optional<Store::Speed> speed() const;
  std::vector<Store::Counter> counters() const;

 private:
  struct Want {
    ByteRange range;
    PartDone done;
  };
  /// One request for all callers that want parts of its range. Guarded by mutex_ until it has been
  /// taken off `reads_`.
  struct Read {
    std::string key;
    ByteRange range;
    std::string known;
    bool past_caches = false;
    std::vector<Want> wants = {};
    std::uint64_t wanted = 0;  // bytes that a caller requested
    bool sent = false;
    bool pauses = false;     // it is sent, but waits for its next request
    bool was_there = false;  // the object, when this was sent
    /// The server does not send ranges as it should: all of the object is requested.
    bool as_whole = false;
    std::unique_ptr<VersionDoubt> doubt = {};  // since an answer had another version
  };
  using ReadPtr = std::shared_ptr<Read>;
  using Range = std::optional<ByteRange>;  // of a request; nullopt: the whole

  std::string place(const std::string& key) const { return service_->url() + "/" + key; }
  void send(const ReadPtr& read);
  void send(const ReadPtr& read, const Range& range);
  void check(const ReadPtr& read, const Range& range, const HttpResponse& response);
  void send_as_whole(const ReadPtr& read);
  void send_by_size(const ReadPtr& read);
  void finish(const ReadPtr& read, const Range& range, ObjectRequests::Outcome outcome);
  bool accepts(const Read& read, const Range& range, const HttpResponse& response);
  void doubt(const ReadPtr& read, const Range& range, ObjectRequests::Outcome outcome);
  void send_after(std::int64_t pause, const ReadPtr& read, const Range& range);
  void check_cached(const std::string& key, const HttpResponse& response,
                    std::optional<std::uint64_t> size) const;
  bool must_confirm(const std::string& key, const Range& range,
                    const ObjectRequests::Outcome& outcome) const;
  void confirm(const ReadPtr& read, const Range& range, HttpResponse response);
  void deliver(const ReadPtr& read, const Range& range, ObjectRequests::Outcome outcome);
  void deliver_parts(const Read& read, const std::vector<Want>& wants, const Range& range,
                     HttpResponse response) const;

  const std::shared_ptr<ObjectService> service_;
  const std::shared_ptr<HttpClient> client_;
  const std::shared_ptr<SharedCaches> caches_;  // may be null
  AnswerVersions versions_;
  std::atomic<std::uint64_t> shared_{0};
  std::atomic<bool> ignores_ranges_{false}, refuses_suffixes_{false};

  std::mutex mutex_;  // guards the fields below; never held while calling out
  std::unordered_map<std::string, std::vector<ReadPtr>> reads_;
  bool stopping_ = false;

  ObjectRequests requests_;  // last: its callbacks use all of the above
};

}  // namespace batchfs
