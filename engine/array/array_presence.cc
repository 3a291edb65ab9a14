#include "engine/array/array_presence.h"

#include <atomic>
#include <future>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/store/fingerprint.h"
#include "engine/store/object_versions.h"
#include "engine/zarr/metadata_json.h"

namespace batchfs {

namespace {

/// The range that the hierarchy requests for documents, so that a cache recognises the request.
constexpr ByteRange kDocument{0, (256 << 20) + 1};

std::string own_document(const ArrayMetadata& metadata) {
  const std::string name = metadata.zarr_format == 3 ? "zarr.json" : ".zarray";
  return metadata.path.empty() ? name : metadata.path + "/" + name;
}

std::string_view text_of(const Buffer& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

/// Requests in flight hold the state, not the store: a store's own thread must not hold the last
/// reference to the store.
struct ArrayPresence::State : std::enable_shared_from_this<State> {
  State(Store& of, std::shared_ptr<const ArrayMetadata> described)
      : store(of),
        metadata(std::move(described)),
        own(own_document(*metadata)),
        is_local(of.is_local()),
        is_needed(!metadata->source.empty() && !of.is_fixed()) {}

  Store& store;
  const std::shared_ptr<const ArrayMetadata> metadata;
  const std::string own;
  const bool is_local, is_needed;

  std::mutex mutex;                   // guards the fields below; never held while calling out
  std::string document;               // that is looked for; empty: not known yet
  std::atomic<bool> is_known{false};  // written under the mutex
  std::vector<std::function<void()>> until_known;
  bool asking = false;
  std::vector<Done> waiting;  // for the next answer
  std::string version;        // that the store reports of the document; empty: not known
  std::string digest;         // of its bytes; empty: not known

  std::string where(const std::string& key) const { return store.url() + "/" + key; }

  /// Precondition: `asking` was set by the caller, and `document` is known.
  void ask() {
    std::vector<Done> now;
    std::string known;
    {
      const std::lock_guard lock(mutex);
      now = std::move(waiting);
      waiting.clear();
      known = version;
    }
    store.read_version_async(
        document, kDocument, known,
        [self = shared_from_this(), known, now = std::move(now)](auto outcome) {
          std::exception_ptr error;
          bool again = false;
          try {
            again = self->judge(std::move(outcome), known);
          } catch (...) {
            error = std::current_exception();
          }
          bool more = false;
          {
            const std::lock_guard lock(self->mutex);
            if (again) self->waiting.insert(self->waiting.end(), now.begin(), now.end());
            more = self->asking = !self->waiting.empty();
          }
          if (!again)
            for (const Done& done : now) done(error);
          if (more) self->ask();
        });
  }

  /// True when the answer may have come from a cache: with the version known, the store itself is
  /// asked. Throws.
  bool judge(std::variant<Store::VersionedRead, std::exception_ptr> outcome,
             const std::string& known) {
    if (const auto* error = std::get_if<std::exception_ptr>(&outcome))
      std::rethrow_exception(*error);
    const Store::VersionedRead& read = std::get<Store::VersionedRead>(outcome);
    if (read.unchanged) return false;
    if (!read.bytes) throw ObjectVersions::vanished(where(document));
    const std::string now = fingerprint(text_of(*read.bytes));
    const std::lock_guard lock(mutex);
    if (digest.empty() && document == metadata->source && document == own) {
      // Servers that report no version: the document as it was parsed.
      DocumentNotes notes;
      if (parse_metadata(text_of(*read.bytes), document, kMaxJsonMemory, notes) !=
          metadata->document)
        throw ObjectVersions::changed(where(document));
    }
    if (!digest.empty() && digest != now) throw ObjectVersions::changed(where(document));
    digest = now;
    version = read.version;
    return known.empty() && !version.empty();
  }

  /// Finds out whether the array has a document of its own. Precondition: `asking` was set by the
  /// caller.
  void find_document() {
    store.read_version_async(own, kDocument, {}, [self = shared_from_this()](auto outcome) {
      const auto* read = std::get_if<Store::VersionedRead>(&outcome);
      bool more = false;
      std::vector<std::function<void()>> ready;
      {
        const std::lock_guard lock(self->mutex);
        // After an error, the next look decides.
        self->document = read != nullptr && !read->bytes ? self->metadata->source : self->own;
        if (read != nullptr && read->bytes) {
          self->digest = fingerprint(text_of(*read->bytes));
          self->version = read->version;
        }
        more = self->asking = !self->waiting.empty();
        self->is_known = true;
        ready.swap(self->until_known);
      }
      if (more) self->ask();
      for (const auto& then : ready) then();
    });
  }
};

ArrayPresence::ArrayPresence(std::shared_ptr<Store> store,
                             std::shared_ptr<const ArrayMetadata> metadata)
    : store_(std::move(store)), state_(std::make_shared<State>(*store_, std::move(metadata))) {
  State& state = *state_;
  if (!state.is_needed) return;
  if (state.own == state.metadata->source) {
    state.document = state.own;
    state.is_known = true;
  } else if (state.is_local) {
    try {
      state.document = store_->size(state.own) ? state.own : state.metadata->source;
    } catch (const Error& error) {
      // Stale: an earlier daemon read the document, and it has since been removed or changed. Any
      // other error makes the document unusable, and nobody asked for its message.
      state.document = error.code() == ErrorCode::stale ? state.own : state.metadata->source;
    }
  }
}

void ArrayPresence::begin() {
  State& state = *state_;
  if (!state.is_needed || state.is_local) return;
  {
    const std::lock_guard lock(state.mutex);
    if (!state.document.empty() || state.asking) return;
    state.asking = true;
  }
  state.find_document();
}

bool ArrayPresence::is_known() const {
  return !state_->is_needed || state_->is_local || state_->is_known;
}

void ArrayPresence::when_known(std::function<void()> then) {
  if (!is_known()) {
    const std::lock_guard lock(state_->mutex);
    if (!state_->is_known) return state_->until_known.push_back(std::move(then));
  }
  then();
}

void ArrayPresence::confirm(Done done) {
  State& state = *state_;
  if (!state.is_needed) return done(nullptr);
  if (state.is_local) {
    std::exception_ptr error;
    try {
      if (!store_->size(state.document))
        throw ObjectVersions::vanished(state.where(state.document));
    } catch (...) {
      error = std::current_exception();
    }
    return done(error);
  }
  begin();
  {
    const std::lock_guard lock(state.mutex);
    state.waiting.push_back(std::move(done));
    if (std::exchange(state.asking, true)) return;
  }
  state.ask();
}

void ArrayPresence::confirm() {
  const auto promise = std::make_shared<std::promise<void>>();
  confirm([promise](std::exception_ptr error) {
    if (error)
      promise->set_exception(error);
    else
      promise->set_value();
  });
  promise->get_future().get();
}

}  // namespace batchfs
