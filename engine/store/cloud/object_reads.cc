#include "engine/store/cloud/object_reads.h"

#include <algorithm>
#include <cstring>
#include <future>

#include <fmt/format.h>

#include "engine/store/http/http_transfer.h"
#include "engine/store/http/object_ranges.h"
#include "engine/store/http/response_checks.h"
#include "engine/store/metadata_keys.h"

namespace batchfs {

namespace {

/// Ranges of an object that are wanted within this time may share a request.
constexpr std::int64_t kMoment = 1'000'000;

std::exception_ptr closing_error() {
  return std::make_exception_ptr(Error(ErrorCode::interrupted, "the store is being closed"));
}

/// An object that was there and is missing now must not be taken for one that never was, whose
/// values are known.
bool is_missing(const ObjectRequests::Outcome& outcome) {
  const auto* response = std::get_if<std::optional<HttpResponse>>(&outcome);
  return response != nullptr && !response->has_value();
}

/// Null: a failure, or missing.
const HttpResponse* answer_of(const ObjectRequests::Outcome& outcome) {
  const auto* response = std::get_if<std::optional<HttpResponse>>(&outcome);
  return response != nullptr && *response ? &**response : nullptr;
}

}  // namespace

ObjectReads::ObjectReads(std::shared_ptr<ObjectService> service, std::shared_ptr<HttpClient> client,
                         RequestOptions options, ObjectVersions::Options versions)
    : service_(std::move(service)),
      client_(std::move(client)),
      caches_(options.caches),
      versions_(std::move(versions)),
      requests_(service_, client_, std::move(options)) {}

void ObjectReads::stop() {
  // `requests_` does not know of reads that are still being collected, or that pause.
  std::vector<Want> wants;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    const auto waits = [](const ReadPtr& read) { return !read->sent || read->pauses; };
    for (auto& [key, reads] : reads_) {
      for (const ReadPtr& read : reads)
        if (waits(read))
          std::move(read->wants.begin(), read->wants.end(), std::back_inserter(wants));
      std::erase_if(reads, waits);
    }
  }
  for (const Want& want : wants) want.done(closing_error());
  requests_.stop();
}

void ObjectReads::start(const std::string& key, const ByteRange& range, const std::string& known,
                        PartDone done, bool past_caches) noexcept {
  ReadPtr read;
  const bool waits = !range.from_end && range.length < kMaxSharedRange && known.empty();
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      std::vector<ReadPtr>& reads = reads_[key];
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
  if (read == nullptr) return done(closing_error());
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

std::optional<ObjectReads::Part> ObjectReads::read(const std::string& key, const ByteRange& range,
                                                   bool past_caches) {
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
std::optional<std::uint64_t> ObjectReads::size(const std::string& key) {
  const std::optional<Part> part = read(key, {0, 1});
  if (!part) return std::nullopt;
  if (part->object_size) return part->object_size;
  const std::optional<Part> whole = read(key, {});
  return whole ? std::optional<std::uint64_t>(whole->bytes.size()) : std::nullopt;
}

void ObjectReads::check_unchanged(const std::string& key, std::string_view version,
                                  std::optional<std::uint64_t> size) {
  if (!versions_.accept(key, version, size)) throw ObjectVersions::changed(place(key));
}

std::optional<Store::Speed> ObjectReads::speed() const {
  return ignores_ranges_ ? std::nullopt : std::optional(requests_.speed());
}

std::vector<Store::Counter> ObjectReads::counters() const {
  std::vector<Store::Counter> all = requests_.counters();
  all.push_back({"shared_reads", shared_});
  for (Store::Counter& counter : versions_.counters()) all.push_back(std::move(counter));
  return all;
}

void ObjectReads::send(const ReadPtr& read) {
  if (read->range.from_end && !read->as_whole && refuses_suffixes_) return send_by_size(read);
  send(read, read->range.is_whole() ? std::nullopt : std::optional(read->range));
}

void ObjectReads::send(const ReadPtr& read, const Range& range) {
  ObjectRequests::Job job;
  job.build = [this, read, range, as_whole = read->as_whole, doubts = read->doubt != nullptr] {
    HttpRequest request = service_->get(read->key);
    request.range = range;
    request.asks_for_range = !as_whole;
    request.largest_body = std::min(request.largest_body, read->range.largest);
    if (!read->known.empty()) request.headers.push_back(unless_version(read->known));
    // A server that balances its load may send all requests of a connection to one replica.
    request.new_connection = doubts;
    return request;
  };
  job.where = place(read->key);
  job.verify = [this, read, range](const HttpResponse& response) { check(read, range, response); };
  job.hedge = true;
  const bool may_be_shared = caches_ != nullptr && !read->past_caches &&
                             !is_rewritten_key(read->key) && read->doubt == nullptr;
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

/// Throws unless the answer matches the request. Its version is checked by finish().
void ObjectReads::check(const ReadPtr& read, const Range& range, const HttpResponse& response) {
  if (response.status == 304) return;
  if (range && response.status == 200 && response.body_received > response.body.size())
    ignores_ranges_ = true;
  // See finish().
  if (range && !read->as_whole && !response.from_gateway &&
      range_support(response, *range) != RangeSupport::as_asked)
    return;
  const std::optional<std::uint64_t> size = check_object(response, range, place(read->key));
  if (!response.from_gateway) return;
  check_cached(read->key, response, size);
  caches_->check_sum(response);
}

void ObjectReads::send_as_whole(const ReadPtr& read) {
  read->as_whole = true;
  send(read, read->range);
}

/// The last bytes, from a server that must receive their beginning.
void ObjectReads::send_by_size(const ReadPtr& read) {
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

void ObjectReads::finish(const ReadPtr& read, const Range& range, ObjectRequests::Outcome outcome) {
  const HttpResponse* answer = answer_of(outcome);
  if (answer != nullptr && range && !read->as_whole) {
    switch (range_support(*answer, *range)) {
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
  if (answer != nullptr) {
    if (!accepts(*read, range, *answer)) return doubt(read, range, std::move(outcome));
    if (read->doubt != nullptr) versions_.note_return();
  }
  if (is_missing(outcome) && versions_.contains(read->key)) {
    // Another request has found it since: this answer was late, or the object was deleted.
    if (!read->was_there) return send(read);
    outcome = std::make_exception_ptr(ObjectVersions::vanished(place(read->key)));
  }
  deliver(read, range, std::move(outcome));
}

/// False: the answer names another version than the object's first.
bool ObjectReads::accepts(const Read& read, const Range& range, const HttpResponse& response) {
  if (response.status == 416) return true;
  if (response.status == 304) return versions_.accept(read.key, read.known, std::nullopt);
  return versions_.accept(read.key, version_of(response), check_object(response, range, {}));
}

/// Decides whether the object has changed, or asks for it once more.
void ObjectReads::doubt(const ReadPtr& read, const Range& range, ObjectRequests::Outcome outcome) {
  const HttpResponse& answer = *answer_of(outcome);
  VersionDoubt::Finding finding = VersionDoubt::Finding::changed;
  if (!service_->names_versions_once()) {
    if (read->doubt == nullptr) read->doubt = std::make_unique<VersionDoubt>();
    const std::string version = answer.status == 304 ? read->known : version_of(answer);
    finding = read->doubt->add(answer, version, versions_.patience(), steady_now());
  }
  if (finding == VersionDoubt::Finding::unclear)
    return send_after(read->doubt->pause(), read, range);
  if (finding == VersionDoubt::Finding::dates_vary) versions_.ignore_dates();
  if (finding == VersionDoubt::Finding::changed || !accepts(*read, range, answer))
    outcome = std::make_exception_ptr(ObjectVersions::changed(place(read->key)));
  deliver(read, range, std::move(outcome));
}

void ObjectReads::send_after(std::int64_t pause, const ReadPtr& read, const Range& range) {
  if (pause == 0) return send(read, range);
  bool too_late = false;
  {
    const std::lock_guard lock(mutex_);
    too_late = stopping_;
    read->pauses = !too_late;
  }
  if (too_late) return deliver(read, range, closing_error());
  requests_.post(steady_now() + pause, [this, read, range] {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      read->pauses = false;
    }
    send(read, range);
  });
}

// ---- answers of shared caches ----
/// Throws unless an answer of a cache is an object that may be the store's.
void ObjectReads::check_cached(const std::string& key, const HttpResponse& response,
                               std::optional<std::uint64_t> size) const {
  const std::string version = version_of(response);
  if (version.empty())
    throw Error(ErrorCode::not_supported, "the object has no version (ETag, Last-Modified)");
  if (!is_framed(response))
    throw Error(ErrorCode::not_supported, "it does not say where its answer ends");
  if (is_encoded(response))
    throw Error(ErrorCode::not_supported, "it compresses what it sends (Content-Encoding)");
  if (!versions_.may_have(key, version, size))
    throw Error(ErrorCode::not_supported, "it has another version of the object");
}

/// Is it an answer of a cache whose version the store has not confirmed?
bool ObjectReads::must_confirm(const std::string& key, const Range& range,
                               const ObjectRequests::Outcome& outcome) const {
  const HttpResponse* answer = answer_of(outcome);
  if (answer == nullptr || !answer->from_gateway || caches_->trust()) return false;
  return !versions_.has(key, version_of(*answer), check_object(*answer, range, {}));
}

/// Asks the store for the object unless it has the version of the cache.
void ObjectReads::confirm(const ReadPtr& read, const Range& range, HttpResponse response) {
  const auto cached = std::make_shared<HttpResponse>(std::move(response));
  const std::string version = version_of(*cached);
  ObjectRequests::Job job;
  job.build = [this, read, range, version] {
    HttpRequest request = service_->get(read->key);
    request.range = range;
    request.largest_body = std::min(request.largest_body, read->range.largest);
    request.headers.push_back(unless_version(version));
    return request;
  };
  job.where = place(read->key);
  job.verify = [range, where = job.where](const HttpResponse& answer) {
    if (answer.status != 304) check_object(answer, range, where);
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

void ObjectReads::deliver(const ReadPtr& read, const Range& range,
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
  deliver_parts(*read, wants, range, std::move(*response));
}

void ObjectReads::deliver_parts(const Read& read, const std::vector<Want>& wants,
                                const Range& range, HttpResponse response) const {
  const std::optional<std::uint64_t> total = check_object(response, range, {});
  const std::string version = version_of(response);
  const std::optional<std::int64_t> modified = modified_of(response);
  if (response.status == 416) response.body = {};
  for (std::size_t i = 0; i < wants.size(); ++i) {
    const auto [begin, length] = slice(read.range, wants[i].range, response.body.size());
    PartOutcome part;
    try {
      if (i + 1 == wants.size() && begin == 0) {
        response.body.truncate(length);
        part = Part{std::move(response.body), total, version, modified};
      } else {
        Buffer bytes(length);
        if (length > 0) std::memcpy(bytes.data(), response.body.data() + begin, length);
        part = Part{std::move(bytes), total, version, modified};
      }
    } catch (const std::bad_alloc&) {
      part = std::make_exception_ptr(Error(ErrorCode::no_memory, "out of memory", place(read.key)));
    }
    wants[i].done(std::move(part));
  }
}

}  // namespace batchfs
