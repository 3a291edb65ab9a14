#include "engine/store/icechunk/icechunk_store.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

#include "engine/base/awaited.h"
#include "engine/base/json.h"
#include "engine/base/strings.h"
#include "engine/store/icechunk/flex_value.h"
#include "engine/store/icechunk/manifest_cache.h"
#include "engine/store/icechunk/repository.h"
#include "engine/store/icechunk/snapshot.h"
#include "engine/store/icechunk/store_keys.h"
#include "engine/store/object_versions.h"
#include "engine/store/place.h"
#include "engine/store/virtual/virtual_places.h"

namespace batchfs {

namespace {

using icechunk::ChunkPlace;
using icechunk::kDocumentName;
using icechunk::Manifest;
using icechunk::Node;

/// Divisors of the memory budget: for the decoded manifests, and for one that is being decoded.
constexpr std::uint64_t kManifestsShare = 4, kPayloadShare = 2;
/// Memory of a decoded reference.
constexpr std::uint64_t kReferenceBytes = 24;
/// Limits of the manifests fetched before any request needs them.
constexpr std::size_t kManifestsAhead = 32;
constexpr std::uint64_t kManifestBytesAhead = 4 << 20;

struct Clipped {
  std::uint64_t begin = 0, length = 0;
};

Clipped clipped(const ByteRange& range, std::uint64_t size) {
  const std::uint64_t begin =
      range.from_end ? size - std::min(range.length, size) : std::min(range.offset, size);
  return {begin, std::min(range.length, size - begin)};
}

Buffer copy_of(icechunk::Bytes bytes, const Clipped& part) {
  Buffer copy(part.length);
  if (part.length > 0) std::memcpy(copy.data(), bytes.data() + part.begin, part.length);
  return copy;
}

/// The prefixes for virtual chunks that a repository's configuration names: name (or empty) and
/// URL. Throws corrupt.
std::vector<std::pair<std::string, std::string>> virtual_containers(icechunk::Bytes config) {
  std::vector<std::pair<std::string, std::string>> found;
  if (config.empty()) return found;
  const auto containers = icechunk::FlexValue::root(config).find("virtual_chunk_containers");
  if (!containers) return found;
  for (const auto& [key, container] : containers->members()) {
    const auto text = [&member = container](std::string_view name) {
      const auto value = member.find(name);
      return value ? std::string(value->text().value_or("")) : std::string();
    };
    std::string url = usual_url(text("url_prefix"));
    // Old configurations have a few that are not URLs.
    if (url.find("://") != std::string::npos) found.emplace_back(text("name"), std::move(url));
  }
  return found;
}

class IcechunkStore final : public Store {
 public:
  IcechunkStore(const IcechunkPlaces& places, std::unique_ptr<icechunk::Repository> repository,
                std::string chosen_by, std::shared_ptr<const icechunk::Snapshot> snapshot,
                std::uint64_t memory)
      : repository_(std::move(repository)),
        chosen_by_(std::move(chosen_by)),
        snapshot_(std::move(snapshot)),
        memory_(memory),
        objects_(places.objects),
        containers_(virtual_containers(repository_->config())),
        outside_(objects_, places.outside, {.containers = containers_}, places.open),
        is_local_(objects_->is_local() && outside_.are_local()),
        manifests_(objects_, snapshot_, {memory / kPayloadShare, memory / kManifestsShare}) {}

  std::string url() const override { return objects_->url(); }
  bool is_local() const override { return is_local_; }
  bool is_fixed() const override { return true; }
  void stop() override { outside_.stop(); }  // the repository's own place is one of them
  std::optional<Speed> speed() const override { return objects_->speed(); }

  /// Starts to fetch the smallest manifests, those of coordinates among them: a round trip less
  /// for each that is wanted.
  void fetch_manifests_ahead() {
    if (objects_->is_local()) return;
    std::vector<icechunk::Snapshot::ManifestFile> files = snapshot_->manifest_files();
    std::sort(files.begin(), files.end(),
              [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < std::min(files.size(), kManifestsAhead); ++i) {
      bytes += files[i].bytes;
      if (files[i].bytes == 0 || bytes > kManifestBytesAhead) break;
      fetch_ahead(files[i].id);
    }
  }

  /// See expect_icechunk_arrays(). An array with one manifest needs it, whatever is read.
  void expect(const std::vector<std::string>& paths) {
    if (objects_->is_local()) return;
    std::uint64_t references = 0;
    for (const std::string& path : paths) {
      const Node* node = snapshot_->find(path);
      if (node == nullptr || !node->is_array || node->uses != 1) continue;
      const icechunk::ObjectId& id = snapshot_->manifests()[node->first_use].id;
      const auto* file = snapshot_->manifest_file(id);
      if (file == nullptr) continue;
      references += file->references;
      if (references * kReferenceBytes > memory_ / kManifestsShare) return;
      fetch_ahead(id);
    }
  }

  std::vector<Counter> counters() const override {
    std::vector<Counter> all = objects_->counters();
    for (Counter& counter : manifests_.counters()) all.push_back(std::move(counter));
    return all;
  }

  std::vector<Entry> list(const std::string& prefix) override {
    if (!prefix.empty()) check_key(prefix);
    if (const Node* array = snapshot_->find(prefix); array != nullptr && array->is_array) {
      std::vector<Entry> entries = {{std::string(kDocumentName), false}};
      if (array->uses == 0) return entries;
      // Opening a store lists its arrays: no manifest is waited for.
      entries.insert(entries.begin(), {"c", rank_of(*array) != 0});
      return entries;
    }
    if (const auto name = icechunk::chunk_name(prefix))
      if (const Node* array = snapshot_->find(name->path); array != nullptr && array->is_array)
        return list_chunks(*array, name->index, prefix);
    return snapshot_->list(prefix);
  }

  /// A snapshot and its chunks never change. Files that virtual chunks lie in may, unless the
  /// manifest names the file's version: then reads compare it.
  std::optional<std::uint64_t> state(const std::string& key) override {
    constexpr std::uint64_t kFixed = 1;
    if (containers_.empty()) return kFixed;
    const std::optional<Place> place = place_of(key);
    if (!place) return 0;
    const VirtualFile& file = place->chunk.file;
    const bool may_change =
        place->chunk.kind == ChunkPlace::Kind::in_file && (file.etag.empty() || !outside_.checks());
    return may_change ? outside_.state(file.location) : kFixed;
  }

  std::optional<Revision> revision() const override {
    return Revision{icechunk::base32(snapshot_->id()), chosen_by_, snapshot_->written_at(),
                    std::string(snapshot_->message())};
  }

  std::uint64_t held_memory() const override {
    std::uint64_t references = 0;
    for (const auto& file : snapshot_->manifest_files()) references += file.references;
    return std::min(snapshot_->memory(), memory_ / kPayloadShare) +
           std::min(references * kReferenceBytes, memory_ / kManifestsShare);
  }

  IcechunkLog log(std::size_t most) {
    const std::lock_guard lock(log_mutex_);
    IcechunkLog log;
    for (const icechunk::Commit& commit : repository_->history(snapshot_->id(), most)) {
      log.history.push_back({icechunk::base32(commit.id), commit.written_at, commit.message});
      log.complete = !commit.parent;
    }
    for (const icechunk::Ref& ref : repository_->branches())
      log.branches.emplace_back(ref.name, icechunk::base32(ref.snapshot));
    for (const icechunk::Ref& ref : repository_->tags())
      log.tags.emplace_back(ref.name, icechunk::base32(ref.snapshot));
    return log;
  }

  std::optional<std::uint64_t> size(const std::string& key) override {
    const std::optional<Place> place = place_of(key);
    return place ? std::optional(place->length()) : std::nullopt;
  }

  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    return awaited<ReadOutcome>([&](ReadDone done) { start(key, range, std::move(done)); });
  }

  void read_async(const std::string& key, ByteRange range, ReadDone done) override {
    if (is_local()) return Store::read_async(key, range, std::move(done));
    start(key, range, std::move(done));
  }

  void read_version_async(const std::string& key, ByteRange range, const std::string& known,
                          VersionedDone done) override {
    if (known != kNoVersion || is_local())
      return Store::read_version_async(key, range, known, std::move(done));
    start(key, range, as_versioned(std::move(done)), true);
  }

  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override {
    const std::optional<Place> place = place_of(key);
    if (!place) return std::nullopt;
    try {
      const Clipped part = clipped({offset, out.size()}, place->length());
      if (part.length == 0) return PartRead{0, place->length()};
      if (place->is_here()) {
        std::memcpy(out.data(), place->chunk.bytes.data() + part.begin, part.length);
      } else if (place->chunk.kind == ChunkPlace::Kind::native) {
        const auto got =
            objects_->read_into(icechunk::chunk_key(place->chunk.object),
                                place->chunk.offset + part.begin, out.first(part.length));
        if (!got) throw gone(place->chunk);
        check_complete(got->bytes, part.length);
      } else {
        const std::optional<Buffer> bytes = read(key, {part.begin, part.length});
        if (!bytes || bytes->size() != part.length) check_complete(0, part.length);
        std::memcpy(out.data(), bytes->data(), part.length);
      }
      return PartRead{part.length, place->length()};
    } catch (Error& error) {
      throw error.at(where(key));
    }
  }

 private:
  void fetch_ahead(const icechunk::ObjectId& manifest) {
    manifests_.get(manifest, [](const icechunk::ManifestCache::Outcome&) {
      // The caller that needs the manifest gets the error.
    });
  }

  /// The target of a key.
  struct Place {
    std::shared_ptr<const Manifest> manifest;  // that `chunk` views
    ChunkPlace chunk;

    bool is_here() const { return chunk.kind == ChunkPlace::Kind::within; }
    std::uint64_t length() const { return is_here() ? chunk.bytes.size() : chunk.length; }
  };
  using PlaceOutcome = std::variant<std::optional<Place>, std::exception_ptr>;

  /// nullopt: its document is not an array's; reading the document reports that.
  static std::optional<std::size_t> rank_of(const Node& array) {
    const std::string_view text(reinterpret_cast<const char*>(array.document.data()),
                                array.document.size());
    try {
      const Json document = parse_json(text, "");
      return JsonRef(document, "").at("shape").elements().size();
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  /// Children of a folder of chunks. Waits for the manifests.
  std::vector<Entry> list_chunks(const Node& array, const std::vector<std::uint32_t>& begin,
                                 const std::string& prefix) {
    const std::size_t rank = rank_of(array).value_or(0);
    if (begin.size() >= rank) return {};
    std::vector<std::uint32_t> numbers;
    const std::span<const icechunk::ManifestUse> uses =
        std::span(snapshot_->manifests()).subspan(array.first_use, array.uses);
    for (const icechunk::ManifestUse& use : uses) {
      if (!snapshot_->may_hold(use, begin)) continue;
      const auto manifest = awaited<icechunk::ManifestCache::Outcome>(
          [&](auto done) { manifests_.get(use.id, std::move(done)); });
      manifest->list(array.id, rank, begin, [&](const std::vector<std::uint32_t>& chunk) {
        if (!numbers.empty() && numbers.back() == chunk[begin.size()]) return;
        if (snapshot_->manifest_of(array, chunk) == &use) numbers.push_back(chunk[begin.size()]);
      });
    }
    std::vector<Entry> entries;
    ListingMemory memory;
    for (const std::uint32_t number : numbers) {
      entries.push_back({std::to_string(number), begin.size() + 1 < rank});
      memory.add(entries.back(), prefix);
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.name < b.name; });
    const auto same = [](const Entry& a, const Entry& b) { return a.name == b.name; };
    entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
    return entries;
  }

  std::string where(const std::string& key) const { return url() + "/" + key; }

  /// `done` is called once, possibly before this returns.
  void locate(const std::string& key, std::function<void(PlaceOutcome)> done) {
    std::optional<Wanted> wanted;
    try {
      check_key(key);
      wanted = want(key);
    } catch (Error& error) {
      return done(std::make_exception_ptr(error.at(where(key))));
    }
    if (!wanted) return done(std::nullopt);
    if (wanted->use == nullptr) return done(Place{nullptr, {.bytes = wanted->node->document}});
    manifests_.get(wanted->use->id,
                   [this, key, wanted = std::move(*wanted),
                    done = std::move(done)](icechunk::ManifestCache::Outcome outcome) {
                     if (const auto* error = std::get_if<std::exception_ptr>(&outcome))
                       return done(*error);
                     PlaceOutcome place;
                     try {
                       auto& manifest = std::get<std::shared_ptr<const Manifest>>(outcome);
                       const auto chunk = manifest->find(wanted.node->id, wanted.index);
                       if (chunk) {
                         check_chunk(*chunk);
                         place = Place{std::move(manifest), *chunk};
                       }
                     } catch (Error& error) {
                       place = std::make_exception_ptr(error.at(where(key)));
                     }
                     done(std::move(place));
                   });
  }

  static void check_chunk(const ChunkPlace& chunk) {
    if (chunk.kind != ChunkPlace::Kind::within && chunk.length == 0)
      throw Error(ErrorCode::corrupt, "the manifest says that the chunk has no bytes");
  }

  struct Wanted {
    const Node* node;
    std::vector<std::uint32_t> index;
    const icechunk::ManifestUse* use;  // null: the document is wanted
  };
  /// nullopt: the object does not exist.
  std::optional<Wanted> want(const std::string& key) const {
    if (const auto path = icechunk::document_path(key)) {
      const Node* node = snapshot_->find(*path);
      return node == nullptr ? std::nullopt : std::optional(Wanted{node, {}, nullptr});
    }
    if (auto name = icechunk::chunk_name(key)) {
      const Node* node = snapshot_->find(name->path);
      if (node != nullptr && node->is_array) {
        const icechunk::ManifestUse* use = snapshot_->manifest_of(*node, name->index);
        if (use == nullptr) return std::nullopt;
        return Wanted{node, std::move(name->index), use};
      }
    }
    // Icechunk has no other keys of chunks; that they are not there does not mean fill values.
    const std::string_view last = std::string_view(key).substr(key.rfind('/') + 1);
    for (std::size_t end = key.rfind('/'); end != std::string::npos && end > 0;
         end = key.rfind('/', end - 1)) {
      const Node* node = snapshot_->find(std::string_view(key).substr(0, end));
      if (node != nullptr && node->is_array && !last.starts_with(".z"))
        throw Error(ErrorCode::not_supported,
                    "Icechunk keeps chunks under their default keys only (c/0/1): nothing can be "
                    "found for an array with another chunk_key_encoding");
    }
    return std::nullopt;
  }

  /// Waits for the manifest.
  std::optional<Place> place_of(const std::string& key) {
    return awaited<PlaceOutcome>([&](auto done) { locate(key, std::move(done)); });
  }

  static Error gone(const ChunkPlace& chunk) {
    return icechunk::removed("chunk file " + icechunk::base32(chunk.object));
  }

  void check_complete(std::uint64_t got, std::uint64_t wanted) const {
    if (got != wanted) throw outside_.too_short();
  }

  void start(const std::string& key, ByteRange range, ReadDone done, bool from_origin = false) {
    locate(key, [this, key, range, from_origin, done = std::move(done)](PlaceOutcome found) {
      if (const auto* error = std::get_if<std::exception_ptr>(&found)) return done(*error);
      auto& place = std::get<std::optional<Place>>(found);
      if (!place) return done(std::nullopt);
      try {
        if (place->length() > range.largest)
          throw Error(ErrorCode::corrupt,
                      fmt::format("it has {}, at most {} were expected",
                                  format_size(place->length()), format_size(range.largest)));
        const Clipped part = clipped(range, place->length());
        if (place->is_here()) return done(copy_of(place->chunk.bytes, part));
        if (part.length == 0) return done(Buffer());
        fetch(key, *place, part, from_origin, done);
      } catch (Error& error) {
        done(std::make_exception_ptr(error.at(where(key))));
      }
    });
  }

  void fetch(const std::string& key, const Place& place, const Clipped& part, bool from_origin,
             const ReadDone& done) {
    const ByteRange range{place.chunk.offset + part.begin, part.length};
    const auto finish = [this, key, place, part, done](ReadOutcome outcome) {
      done(checked(key, place, part, std::move(outcome)));
    };
    if (place.chunk.kind == ChunkPlace::Kind::native && from_origin)
      read_past_caches(*objects_, icechunk::chunk_key(place.chunk.object), range, finish);
    else if (place.chunk.kind == ChunkPlace::Kind::native)
      objects_->read_async(icechunk::chunk_key(place.chunk.object), range, finish);
    else
      outside_.read_async(place.chunk.file, range, finish, from_origin);
  }

  /// Returns the outcome if it is the chunk's part; else an error.
  ReadOutcome checked(const std::string& key, const Place& place, const Clipped& part,
                      ReadOutcome outcome) const {
    try {
      if (const auto* error = std::get_if<std::exception_ptr>(&outcome))
        std::rethrow_exception(*error);
      const auto& bytes = std::get<std::optional<Buffer>>(outcome);
      if (!bytes) throw gone(place.chunk);
      check_complete(bytes->size(), part.length);
    } catch (Error& error) {
      return std::make_exception_ptr(error.at(where(key)));
    } catch (...) {
      return std::current_exception();
    }
    return outcome;
  }

  std::mutex log_mutex_;  // of repository_
  const std::unique_ptr<icechunk::Repository> repository_;
  const std::string chosen_by_;
  const std::shared_ptr<const icechunk::Snapshot> snapshot_;
  const std::uint64_t memory_;
  const std::shared_ptr<Store> objects_;
  /// Without any, no chunk lies outside of the repository.
  const std::vector<std::pair<std::string, std::string>> containers_;
  VirtualPlaces outside_;
  const bool is_local_;
  icechunk::ManifestCache manifests_;
};

}  // namespace

std::shared_ptr<Store> open_icechunk_store(const IcechunkPlaces& places,
                                           const IcechunkOptions& options, std::uint64_t memory,
                                           RepositorySigns signs) {
  auto repository =
      icechunk::Repository::find(places.entry, options, memory / kPayloadShare, std::move(signs));
  if (repository == nullptr) return nullptr;
  icechunk::Repository::Choice choice = repository->choose();
  const std::string key = icechunk::snapshot_key(choice.snapshot);
  // Expiration rewrites snapshots of version 1.
  Store& holder = repository->version() == 1 ? *places.entry : *places.objects;
  const auto bytes = holder.read(key, {0, UINT64_MAX, false, memory / kPayloadShare});
  if (!bytes)
    throw Error(ErrorCode::not_found,
                "the repository has no snapshot " + icechunk::base32(choice.snapshot),
                places.objects->url());
  std::shared_ptr<const icechunk::Snapshot> snapshot;
  try {
    snapshot = icechunk::Snapshot::parse(bytes->span(), choice.snapshot, memory / kPayloadShare);
  } catch (Error& error) {
    throw error.at(places.objects->url() + "/" + key);
  }
  if (snapshot->nodes().empty())
    throw Error(ErrorCode::not_found,
                fmt::format("the Icechunk snapshot {} holds no group and no array: nothing had "
                            "been written yet",
                            icechunk::base32(choice.snapshot)),
                places.objects->url());
  auto store = std::make_shared<IcechunkStore>(
      places, std::move(repository), std::move(choice.words), std::move(snapshot), memory);
  store->fetch_manifests_ahead();
  return store;
}

void expect_icechunk_arrays(Store& store, const std::vector<std::string>& paths) {
  if (auto* const repository = dynamic_cast<IcechunkStore*>(&store)) repository->expect(paths);
}

std::optional<IcechunkLog> icechunk_log(Store& store, std::size_t most) {
  auto* const repository = dynamic_cast<IcechunkStore*>(&store);
  if (repository == nullptr) return std::nullopt;
  return repository->log(most);
}

}  // namespace batchfs
