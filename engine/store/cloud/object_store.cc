#include "engine/store/cloud/object_store.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <mutex>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/store/cloud/object_listing.h"
#include "engine/store/http/http_transfer.h"
#include "engine/store/http/object_ranges.h"
#include "engine/store/http/response_checks.h"
#include "engine/store/metadata_keys.h"

namespace batchfs {

namespace {

/// Ranges of an object that are wanted within this time may share a request.
constexpr std::int64_t kMoment = 1'000'000;

}  // namespace

/// Reads in flight, by key.
class ObjectStore::Reads {
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

  Reads(std::shared_ptr<ObjectService> service, std::shared_ptr<HttpClient> client,
        RequestOptions options, ObjectVersions::Options versions)
      : service_(std::move(service)),
        client_(std::move(client)),
        caches_(options.caches),
        versions_(std::move(versions)),
        requests_(service_, client_, std::move(options)) {}

  ~Reads() { stop(); }

  void stop() {
    // Wants that are still being collected have not been sent, so `requests_` does not know of
    // them.
    std::vector<Want> wants;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      for (auto& [key, reads] : reads_) {
        for (const auto& read : reads)
          if (!read->sent)
            std::move(read->wants.begin(), read->wants.end(), std::back_inserter(wants));
        std::erase_if(reads, [](const auto& read) { return !read->sent; });
      }
    }
    for (const Want& want : wants) want.done(interrupted());
    requests_.stop();
  }

  /// With `known`, the object is sent only if it is another version; `past_caches`: no shared cache
  /// is asked. noexcept: read() waits for `done`, which must not be called when it has been
  /// unwound.
  void start(const std::string& key, const ByteRange& range, const std::string& known,
             PartDone done, bool past_caches = false) noexcept {
    std::shared_ptr<Read> read;
    const bool waits = !range.from_end && range.length < kMaxSharedRange && known.empty();
    {
      const std::lock_guard lock(mutex_);
      if (!stopping_) {
        std::vector<std::shared_ptr<Read>>& reads = reads_[key];
        for (const auto& other : reads) {
          if (other->known == known && other->past_caches == past_caches &&
              (covers(other->range, range) ||
               (!other->sent && widen(other->range, other->wanted, range)))) {
            other->wants.push_back({range, std::move(done)});
            ++shared_;
            return;
          }
        }
        read = std::make_shared<Read>(Read{key, range, known, past_caches});
        read->wants.push_back({range, std::move(done)});
        read->wanted = range.length;
        read->sent = !waits;
        reads.push_back(read);
      }
    }
    if (read == nullptr) return done(interrupted());
    if (!waits) return send(read);
    requests_.post(steady_now() + kMoment, [this, read] {
      {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        read->sent = true;
      }
      send(read);
    });
  }

  std::optional<Part> read(const std::string& key, const ByteRange& range,
                           bool past_caches = false) {
    if (requests_.is_own_thread())
      throw Error(ErrorCode::internal, "a read's callback may not wait for a read", place(key));
    std::promise<PartOutcome> promise;
    start(
        key, range, {}, [&promise](PartOutcome outcome) { promise.set_value(std::move(outcome)); },
        past_caches);
    PartOutcome outcome = promise.get_future().get();
    if (auto* error = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*error);
    return std::move(std::get<std::optional<Part>>(outcome));
  }

  /// Requests the first byte rather than HEAD, which not every server supports, and whose refusal
  /// is ambiguous.
  std::optional<std::uint64_t> size(const std::string& key) {
    const std::optional<Part> part = read(key, {0, 1});
    if (!part) return std::nullopt;
    if (part->object_size) return part->object_size;
    const std::optional<Part> whole = read(key, {});
    return whole ? std::optional<std::uint64_t>(whole->bytes.size()) : std::nullopt;
  }

  std::vector<Entry> list(const std::string& at) { return list_objects(*service_, requests_, at); }

  /// Throws stale when the object has another version than when it was first read.
  void check_unchanged(const std::string& key, std::string_view version,
                       std::optional<std::uint64_t> size) {
    if (!versions_.accept(key, versions_.digest(identity_of(version, size))))
      throw ObjectVersions::changed(place(key));
  }

  bool list_versions(const std::string& prefix, const VisitVersion& visit) {
    return batchfs::list_versions(*service_, requests_, prefix, visit);
  }

  std::optional<Speed> speed() const {
    return ignores_ranges_ ? std::nullopt : std::optional(requests_.speed());
  }

  std::vector<Counter> counters() const {
    std::vector<Counter> all = requests_.counters();
    all.push_back({"shared_reads", shared_});
    for (Store::Counter& counter : versions_.counters()) all.push_back(std::move(counter));
    return all;
  }

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
    bool was_there = false;  // the object, when this was sent
    /// The server does not send ranges as it should: all of the object is requested.
    bool as_whole = false;
  };

  static std::exception_ptr interrupted() {
    return std::make_exception_ptr(Error(ErrorCode::interrupted, "the store is being closed"));
  }

  std::string place(const std::string& key) const { return service_->url() + "/" + key; }

  void send(const std::shared_ptr<Read>& read) {
    if (read->range.from_end && !read->as_whole && refuses_suffixes_) return send_by_size(read);
    send(read, read->range.is_whole() ? std::nullopt : std::optional(read->range));
  }

  /// `range`: of the request; nullopt: the whole.
  void send(const std::shared_ptr<Read>& read, const std::optional<ByteRange>& range) {
    ObjectRequests::Job job;
    job.build = [this, read, range] {
      HttpRequest request = service_->get(read->key);
      request.range = range;
      request.asks_for_range = !read->as_whole;
      request.largest_body = std::min(request.largest_body, read->range.largest);
      if (!read->known.empty()) request.headers.push_back(unless_version(read->known));
      return request;
    };
    job.where = place(read->key);
    job.verify = [this, read, range, where = job.where](const HttpResponse& response) {
      if (response.status == 304) return check_unchanged(read->key, read->known, std::nullopt);
      if (range && response.status == 200 && response.body_received > response.body.size())
        ignores_ranges_ = true;
      // See finish().
      if (range && !read->as_whole && !response.from_gateway &&
          range_support(response, *range) != RangeSupport::as_asked)
        return;
      const std::optional<std::uint64_t> size = check_object(response, range, where);
      if (response.from_gateway) {
        check_cached(read->key, response, size);
        caches_->check_sum(response);
        if (!caches_->trust()) return;  // see confirm()
      }
      if (response.status != 416) check_unchanged(read->key, version_of(response), size);
    };
    job.hedge = true;
    const bool may_be_shared =
        caches_ != nullptr && !read->past_caches && !is_rewritten_key(read->key);
    if (may_be_shared && read->known == kNoVersion) caches_->fell_back();
    if (may_be_shared && read->known.empty())
      job.shared = read->range.from_end ? 0 : read->range.offset;
    read->was_there = versions_.contains(read->key);
    requests_.send(std::move(job), [this, read, range](ObjectRequests::Outcome outcome) {
      if (must_confirm(read->key, range, outcome))
        return confirm(read, range, std::move(*std::get<std::optional<HttpResponse>>(outcome)));
      finish(read, range, std::move(outcome));
    });
  }

  void send_as_whole(const std::shared_ptr<Read>& read) {
    read->as_whole = true;
    send(read, read->range);
  }

  /// The last bytes, from a server that must receive their beginning.
  void send_by_size(const std::shared_ptr<Read>& read) {
    start(read->key, {0, 1}, {}, [this, read](PartOutcome outcome) {
      if (auto* error = std::get_if<std::exception_ptr>(&outcome))
        return deliver(read, std::nullopt, std::move(*error));
      const auto& part = std::get<std::optional<Part>>(outcome);
      if (!part) return deliver(read, std::nullopt, std::optional<HttpResponse>());
      if (!part->object_size || *part->object_size == 0) return send_as_whole(read);
      const std::uint64_t size = *part->object_size;
      const std::uint64_t length = std::min(size, read->range.length);
      send(read, ByteRange{size - length, length});
    });
  }

  void finish(const std::shared_ptr<Read>& read, const std::optional<ByteRange>& range,
              ObjectRequests::Outcome outcome) {
    const auto* response = std::get_if<std::optional<HttpResponse>>(&outcome);
    if (response != nullptr && *response && range && !read->as_whole) {
      switch (range_support(**response, *range)) {
        case RangeSupport::as_asked:
          break;
        case RangeSupport::no_suffixes:
          refuses_suffixes_ = true;
          return send_by_size(read);
        case RangeSupport::none:
          ignores_ranges_ = true;
          return send_as_whole(read);
      }
    }
    if (is_missing(outcome) && versions_.contains(read->key)) {
      // Another request has found it since: this answer was late, or the object was deleted.
      if (!read->was_there) return send(read);
      outcome = std::make_exception_ptr(ObjectVersions::vanished(place(read->key)));
    }
    deliver(read, range, std::move(outcome));
  }

  // ---- answers of shared caches ----
  /// Throws unless an answer of a cache is an object that may be the store's.
  void check_cached(const std::string& key, const HttpResponse& response,
                    std::optional<std::uint64_t> size) const {
    const std::string version = version_of(response);
    if (version.empty())
      throw Error(ErrorCode::not_supported, "the object has no version (ETag, Last-Modified)");
    if (!is_framed(response))
      throw Error(ErrorCode::not_supported, "it does not say where its answer ends");
    if (is_encoded(response))
      throw Error(ErrorCode::not_supported, "it compresses what it sends (Content-Encoding)");
    const std::uint64_t digest = versions_.digest(identity_of(version, size));
    if (versions_.find(key).value_or(digest) != digest)
      throw Error(ErrorCode::not_supported, "it has another version of the object");
  }

  /// Is it an answer of a cache whose version the store has not confirmed?
  bool must_confirm(const std::string& key, const std::optional<ByteRange>& range,
                    const ObjectRequests::Outcome& outcome) const {
    const auto* response = std::get_if<std::optional<HttpResponse>>(&outcome);
    if (response == nullptr || !*response || !(*response)->from_gateway || caches_->trust())
      return false;
    const auto size = check_object(**response, range, {});
    return versions_.find(key) != versions_.digest(identity_of(version_of(**response), size));
  }

  /// Asks the store for the object unless it has the version of the cache.
  void confirm(const std::shared_ptr<Read>& read, const std::optional<ByteRange>& range,
               HttpResponse response) {
    const auto cached = std::make_shared<HttpResponse>(std::move(response));
    const std::string version = version_of(*cached);
    const std::optional<std::uint64_t> size = check_object(*cached, range, {});
    ObjectRequests::Job job;
    job.build = [this, read, range, version] {
      HttpRequest request = service_->get(read->key);
      request.range = range;
      request.largest_body = std::min(request.largest_body, read->range.largest);
      request.headers.push_back(unless_version(version));
      return request;
    };
    job.where = place(read->key);
    job.verify = [this, read, range, version, size, where = job.where](const HttpResponse& answer) {
      if (answer.status == 304) return check_unchanged(read->key, version, size);
      const std::optional<std::uint64_t> its_size = check_object(answer, range, where);
      if (answer.status != 416) check_unchanged(read->key, version_of(answer), its_size);
    };
    job.hedge = true;
    requests_.send(std::move(job), [this, read, range, cached](ObjectRequests::Outcome outcome) {
      const auto* answer = std::get_if<std::optional<HttpResponse>>(&outcome);
      const bool same = answer != nullptr && *answer && (*answer)->status == 304;
      if (same) outcome = std::move(*cached);
      if (answer != nullptr) same ? caches_->confirmed() : caches_->outdated();
      finish(read, range, std::move(outcome));
    });
  }

  /// An object that was there and is missing now must not be taken for one that never was, whose
  /// values are known.
  static bool is_missing(const ObjectRequests::Outcome& outcome) {
    const auto* response = std::get_if<std::optional<HttpResponse>>(&outcome);
    return response != nullptr && !response->has_value();
  }

  void deliver(const std::shared_ptr<Read>& read, const std::optional<ByteRange>& range,
               ObjectRequests::Outcome outcome) {
    std::vector<Want> wants;
    {
      const std::lock_guard lock(mutex_);
      const auto it = reads_.find(read->key);
      std::erase(it->second, read);
      if (it->second.empty()) reads_.erase(it);
      wants = std::move(read->wants);
    }
    if (auto* error = std::get_if<std::exception_ptr>(&outcome)) {
      for (const Want& want : wants) want.done(*error);
      return;
    }
    std::optional<HttpResponse>& response = std::get<std::optional<HttpResponse>>(outcome);
    if (!response) {
      for (const Want& want : wants) want.done(std::optional<Part>());
      return;
    }
    if (response->status == 304) {
      for (const Want& want : wants) want.done(Part{{}, {}, read->known, {}, true});
      return;
    }
    const std::optional<std::uint64_t> total = check_object(*response, range, {});
    const std::string version = version_of(*response);
    const std::optional<std::int64_t> modified = modified_of(*response);
    if (response->status == 416) response->body = {};
    for (std::size_t i = 0; i < wants.size(); ++i) {
      const auto [begin, length] = slice(read->range, wants[i].range, response->body.size());
      PartOutcome part;
      try {
        if (i + 1 == wants.size() && begin == 0) {
          response->body.truncate(length);
          part = Part{std::move(response->body), total, version, modified};
        } else {
          Buffer bytes(length);
          if (length > 0) std::memcpy(bytes.data(), response->body.data() + begin, length);
          part = Part{std::move(bytes), total, version, modified};
        }
      } catch (const std::bad_alloc&) {
        part =
            std::make_exception_ptr(Error(ErrorCode::no_memory, "out of memory", place(read->key)));
      }
      wants[i].done(std::move(part));
    }
  }

  const std::shared_ptr<ObjectService> service_;
  const std::shared_ptr<HttpClient> client_;
  const std::shared_ptr<SharedCaches> caches_;  // may be null
  ObjectVersions versions_;
  std::atomic<std::uint64_t> shared_{0};
  std::atomic<bool> ignores_ranges_{false}, refuses_suffixes_{false};

  std::mutex mutex_;  // guards the fields below; never held while calling out
  std::unordered_map<std::string, std::vector<std::shared_ptr<Read>>> reads_;
  bool stopping_ = false;

  ObjectRequests requests_;  // last: its callbacks use all of the above
};

ObjectStore::ObjectStore(std::shared_ptr<ObjectService> service, std::shared_ptr<HttpClient> client,
                         RequestOptions options, ObjectVersions::Options versions)
    : service_(std::move(service)),
      reads_(std::make_unique<Reads>(service_, std::move(client), std::move(options),
                                     std::move(versions))) {}
ObjectStore::~ObjectStore() = default;

std::string ObjectStore::url() const { return service_->url(); }
void ObjectStore::stop() { reads_->stop(); }
std::optional<Store::Speed> ObjectStore::speed() const { return reads_->speed(); }
bool ObjectStore::can_list() const { return service_->can_list(); }
std::vector<Store::Counter> ObjectStore::counters() const { return reads_->counters(); }

void ObjectStore::read_async(const std::string& key, ByteRange range, ReadDone done) {
  try {
    check_key(key);
  } catch (...) {
    return done(std::current_exception());
  }
  // HTTP has no empty ranges.
  const bool nothing = range.length == 0;
  reads_->start(key, nothing ? ByteRange{0, 1} : range, {},
                [nothing, done = std::move(done)](Reads::PartOutcome outcome) {
                  if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(*error);
                  auto& part = std::get<std::optional<Reads::Part>>(outcome);
                  if (part && nothing) part->bytes.truncate(0);
                  done(part ? std::optional<Buffer>(std::move(part->bytes)) : std::nullopt);
                });
}

void ObjectStore::read_version_async(const std::string& key, ByteRange range,
                                     const std::string& known, VersionedDone done) {
  try {
    check_key(key);
  } catch (...) {
    return done(std::current_exception());
  }
  const bool nothing = range.length == 0;
  reads_->start(key, nothing ? ByteRange{0, 1} : range, known,
                [nothing, done = std::move(done)](Reads::PartOutcome outcome) {
                  if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(*error);
                  VersionedRead read;
                  if (auto& part = std::get<std::optional<Reads::Part>>(outcome)) {
                    read.unchanged = part->unchanged;
                    read.version = std::move(part->version);
                    read.object_size = part->object_size;
                    read.modified = part->modified;
                    if (nothing) part->bytes.truncate(0);
                    if (!part->unchanged) read.bytes = std::move(part->bytes);
                  }
                  done(std::move(read));
                });
}

std::optional<Buffer> ObjectStore::read(const std::string& key, ByteRange range) {
  check_key(key);
  std::optional<Reads::Part> part = reads_->read(key, range.length == 0 ? ByteRange{0, 1} : range);
  if (!part) return std::nullopt;
  if (range.length == 0) part->bytes.truncate(0);
  return std::move(part->bytes);
}

std::optional<Store::PartRead> ObjectStore::read_into(const std::string& key, std::uint64_t offset,
                                                      std::span<std::byte> out) {
  check_key(key);
  std::uint64_t bytes = 0;
  if (!out.empty()) {
    const std::optional<Reads::Part> part = reads_->read(key, {offset, out.size()});
    if (!part) return std::nullopt;
    bytes = part->bytes.size();
    if (bytes > 0) std::memcpy(out.data(), part->bytes.data(), bytes);
    if (part->object_size) return PartRead{bytes, *part->object_size};
  }
  const std::optional<std::uint64_t> total = size(key);
  return total ? std::optional<PartRead>({bytes, *total}) : std::nullopt;
}

std::optional<std::uint64_t> ObjectStore::size(const std::string& key) {
  check_key(key);
  return reads_->size(key);
}

std::optional<std::uint64_t> ObjectStore::state(const std::string& key) {
  check_key(key);
  const std::optional<Reads::Part> part = reads_->read(key, {0, 1}, true);
  return part ? state_of(part->version, part->object_size) : 0;
}

bool ObjectStore::list_states(const std::string& prefix, const Visit& visit) {
  std::optional<bool> agrees;
  const bool is_listed = reads_->list_versions(prefix, [&](const auto& object) {
    const auto state = state_of(object.version, object.size);
    if (!agrees) agrees = state && this->state(object.key) == state;
    if (!*agrees) return false;
    reads_->check_unchanged(object.key, object.version, object.size);
    return visit(object.key, state.value_or(0));
  });
  return is_listed && agrees.value_or(true);
}

std::vector<Store::Entry> ObjectStore::list(const std::string& prefix) {
  if (!prefix.empty()) check_key(prefix);
  return reads_->list(prefix);
}

}  // namespace batchfs
