#include "engine/store/cache/disk_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/awaited.h"
#include "engine/store/cache/cache_files.h"
#include "engine/store/cache/cache_writer.h"
#include "engine/store/fingerprint.h"
#include "engine/store/http/response_checks.h"
#include "engine/store/metadata_keys.h"
#include "engine/store/state_listing.h"

namespace batchfs {

namespace {

/// A kept object of which a part is wanted is read, and its checksum made, as a whole: not a large
/// one.
constexpr std::uint64_t kMaxForPart = 16 << 20;
constexpr std::uint64_t kMaxEntry = std::uint64_t{4} << 30;

/// The part of an object that a range names.
Buffer cut(Buffer object, const ByteRange& range) {
  const std::uint64_t size = object.size();
  const std::uint64_t begin =
      range.from_end ? size - std::min(range.length, size) : std::min(range.offset, size);
  const std::uint64_t length = std::min(range.length, size - begin);
  if (begin > 0 && length > 0) std::memmove(object.data(), object.data() + begin, length);
  object.truncate(length);
  return object;
}

class DiskCache final : public Store, public StateListing {
 public:
  DiskCache(std::shared_ptr<Store> parent, DiskCacheOptions options)
      : realm_(parent->url() + '\n' + options.realm + '\n'),
        trust_(options.trust),
        versions_(std::move(options.versions)),
        files_(options.directory, {.limit = options.limit, .touch_after = options.touch_after}),
        writer_(files_, {options.queue, options.wait_for_disk, std::move(options.warn)}),
        parent_(std::move(parent)) {}

  std::string url() const override { return parent_->url(); }
  bool is_local() const override { return false; }
  bool can_list() const override { return parent_->can_list(); }
  std::vector<Entry> list(const std::string& prefix) override { return parent_->list(prefix); }

  std::optional<std::uint64_t> size(const std::string& key) override {
    check_key(key);
    // Metadata is read next: the same round trip fetches or confirms it.
    if (!is_metadata_key(key)) return parent_->size(key);
    const std::optional<Buffer> bytes = read(key, {});
    return bytes ? std::optional<std::uint64_t>(bytes->size()) : std::nullopt;
  }

  /// The state of the parent's object: entries of another version are useless then, even where the
  /// cache is trusted.
  std::optional<std::uint64_t> state(const std::string& key) override {
    check_key(key);
    const std::optional<std::uint64_t> now = parent_->state(key);
    if (now == 0 && versions_.contains(key)) throw ObjectVersions::vanished(url() + "/" + key);
    if (now && *now != 0) accept(key, *now);
    return now;
  }

  bool list_states(const std::string& prefix, const Visit& visit) override {
    auto* const parent = dynamic_cast<StateListing*>(parent_.get());
    return parent != nullptr &&
           parent->list_states(prefix, [&](const std::string& key, std::uint64_t now) {
             accept(key, now);
             return visit(key, now);
           });
  }

  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    return awaited<ReadOutcome>([&](ReadDone done) { read_async(key, range, std::move(done)); });
  }

  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override {
    const VersionedRead got = awaited<Outcome>([&](auto done) {
      start(key, {offset, out.size()}, std::move(done));
    });
    if (!got.bytes) return std::nullopt;
    std::copy_n(got.bytes->data(), got.bytes->size(), out.data());
    const std::optional<std::uint64_t> object_size =
        got.object_size ? got.object_size : parent_->size(key);
    if (!object_size) throw ObjectVersions::vanished(url() + "/" + key);
    return PartRead{got.bytes->size(), *object_size};
  }

  void read_async(const std::string& key, ByteRange range, ReadDone done) override {
    start(key, range, [done = std::move(done)](Outcome outcome) {
      if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(std::move(*error));
      done(std::move(std::get<VersionedRead>(outcome).bytes));
    });
  }

  void read_version_async(const std::string& key, ByteRange range, const std::string& known,
                          VersionedDone done) override {
    if (!known.empty() && known != kNoVersion)
      return parent_->read_version_async(key, range, known, std::move(done));
    start(key, range, std::move(done), !known.empty());
  }

  void stop() override { parent_->stop(); }

  bool holds(const std::string& key, const ByteRange& range) const {
    return files_.contains(name_of(key, range)) ||
           (!range.is_whole() && files_.contains(name_of(key, {}), kMaxForPart));
  }

  std::vector<Counter> counters() const override {
    std::vector<Counter> all = parent_->counters();
    const CacheWriter::Counters written = writer_.counters();
    all.insert(all.end(), {{"disk_cache_hits", hits_},
                           {"disk_cache_confirmed", confirmed_},
                           {"disk_cache_misses", misses_},
                           {"disk_cache_bytes_read", hit_bytes_},
                           {"disk_cache_bytes_written", written.bytes},
                           {"disk_cache_not_kept", written.dropped},
                           {"disk_cache_damaged", files_.damaged()},
                           {"disk_cache_evicted", files_.evicted()}});
    for (Counter& counter : versions_.counters())
      all.push_back({"disk_cache_" + counter.name, counter.value});
    return all;
  }

 private:
  void accept(const std::string& key, std::uint64_t now) {
    if (!versions_.accept(key, now)) throw ObjectVersions::changed(url() + "/" + key);
  }

  using Outcome = std::variant<VersionedRead, std::exception_ptr>;

  /// The cached entry for a request.
  struct Kept {
    CacheFiles::Version version;
    Buffer bytes;
    CacheFiles::Name name;
  };

  /// `done` gets the bytes, and the object's size where that is known. `anew`: the kept entry is
  /// invalid, though its checksum fits; the next answer replaces it.
  void start(const std::string& key, ByteRange range, VersionedDone done, bool anew = false) {
    const bool was_there = versions_.contains(key);
    std::optional<Kept> kept;
    std::optional<std::uint64_t> current;
    try {
      check_key(key);
      current = versions_.find(key);
      if (!anew) kept = find(key, range, current);
    } catch (...) {
      return done(std::current_exception());
    }
    if (kept && (current || (trust_ && !is_rewritten_key(key)))) {
      if (!accept(key, kept->version)) return done(changed(key));
      ++hits_;
      hit_bytes_ += kept->bytes.size();
      return done(answer(std::move(kept->bytes), kept->version));
    }
    const auto shared = std::make_shared<std::optional<Kept>>(std::move(kept));
    const std::string known = anew ? kNoVersion : *shared ? (*shared)->version.text : "";
    parent_->read_version_async(
        key, range, known,
        [this, key, range, was_there, shared, done = std::move(done)](Outcome outcome) {
          const auto* read = std::get_if<VersionedRead>(&outcome);
          const bool missing = read != nullptr && !read->bytes && !read->unchanged;
          // Another read has found it since: this answer was late, or the object has gone.
          if (missing && !was_there && versions_.contains(key)) return start(key, range, done);
          arrived(key, range, std::move(*shared), std::move(outcome), done);
        });
  }

  CacheFiles::Name name_of(const std::string& key, const ByteRange& range) const {
    const std::uint64_t offset = range.from_end ? 0 : range.offset;
    return CacheFiles::name_of(fmt::format("{}{}\n{}{}+{}", realm_, key,
                                           range.from_end ? "end-" : "", offset, range.length));
  }

  /// Finds an entry of the version `current`, if known; removes an entry of another version.
  std::optional<Kept> find(const std::string& key, const ByteRange& range,
                           std::optional<std::uint64_t> current) {
    for (const ByteRange& kept_range : {range, ByteRange{}}) {
      const bool part = kept_range.is_whole() && !range.is_whole();
      const CacheFiles::Name name = name_of(key, kept_range);
      std::optional<CacheFiles::Entry> entry =
          files_.get(name, part ? kMaxForPart : kMaxEntry, [&](const CacheFiles::Version& version) {
            return !current || digest(version) == *current;
          });
      if (entry)
        return Kept{std::move(entry->version),
                    part ? cut(std::move(entry->bytes), range) : std::move(entry->bytes), name};
      if (range.is_whole()) break;
    }
    return std::nullopt;
  }

  /// The parent's answer. On a thread that must not block.
  void arrived(const std::string& key, const ByteRange& range, std::optional<Kept> kept,
               Outcome outcome, const VersionedDone& done) {
    if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(std::move(*error));
    VersionedRead& read = std::get<VersionedRead>(outcome);
    if (read.unchanged && kept) {
      if (!accept(key, kept->version)) return done(changed(key));
      ++confirmed_;
      hit_bytes_ += kept->bytes.size();
      return done(answer(std::move(kept->bytes), kept->version));
    }
    ++misses_;
    if (!read.bytes) {
      // An object that existed a moment ago has been deleted: missing would become fill values.
      if (versions_.contains(key))
        return done(std::make_exception_ptr(ObjectVersions::vanished(url() + "/" + key)));
      return done(VersionedRead{});
    }
    if (read.version.empty()) return done(std::move(read));
    CacheFiles::Version version{std::move(read.version),
                                read.object_size.value_or(CacheFiles::Version::kUnknown)};
    if (!accept(key, version)) return done(changed(key));
    writer_.write(name_of(key, range), version, std::move(*read.bytes),
                  [done, version](ReadOutcome got) {
                    if (auto* error = std::get_if<std::exception_ptr>(&got))
                      return done(std::move(*error));
                    done(answer(std::move(std::get<std::optional<Buffer>>(got)), version));
                  });
  }

  static VersionedRead answer(std::optional<Buffer> bytes, const CacheFiles::Version& version) {
    VersionedRead read;
    read.bytes = std::move(bytes);
    read.version = version.text;
    if (version.object_size != CacheFiles::Version::kUnknown)
      read.object_size = version.object_size;
    return read;
  }

  /// The number that the parent's state() returns.
  static std::uint64_t digest(const CacheFiles::Version& version) {
    const bool has_size = version.object_size != CacheFiles::Version::kUnknown;
    const std::string identity =
        identity_of(version.text, has_size ? std::optional(version.object_size) : std::nullopt);
    return lasting_digest(identity.empty() ? version.text : identity);
  }

  /// False when the object had another version.
  bool accept(const std::string& key, const CacheFiles::Version& version) {
    return versions_.accept(key, digest(version));
  }
  std::exception_ptr changed(const std::string& key) const {
    return std::make_exception_ptr(ObjectVersions::changed(url() + "/" + key));
  }

  const std::string realm_;
  const bool trust_;
  std::atomic<std::uint64_t> hits_{0}, confirmed_{0}, misses_{0}, hit_bytes_{0};
  ObjectVersions versions_;
  CacheFiles files_;
  CacheWriter writer_;
  std::shared_ptr<Store> parent_;  // last: its callbacks, which end with it, use all of the above
};

}  // namespace

std::optional<bool> is_on_disk(const Store& store, const std::string& key, const ByteRange& range) {
  const auto* cache = dynamic_cast<const DiskCache*>(&store);
  return cache == nullptr ? std::nullopt : std::optional(cache->holds(key, range));
}

std::shared_ptr<Store> open_disk_cache(std::shared_ptr<Store> parent, DiskCacheOptions options) {
  return std::make_shared<DiskCache>(std::move(parent), std::move(options));
}

}  // namespace batchfs
