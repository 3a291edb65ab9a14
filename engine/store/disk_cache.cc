#include "engine/store/disk_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <mutex>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/store/cache_files.h"
#include "engine/store/cache_writer.h"

namespace batchfs {

namespace {

/// A kept object of which a part is wanted is read, and its checksum made, as a whole: not a large one.
constexpr std::uint64_t kLargestForPart = 16 << 20;
constexpr std::uint64_t kLargestEntry = std::uint64_t{4} << 30;
/// Objects whose version is remembered while the store is open: at 24 bytes and the table's own.
constexpr std::size_t kMostSeen = 4 << 20;

bool is_whole(const ByteRange& range) { return !range.from_end && range.offset == 0 && range.length == UINT64_MAX; }

bool is_metadata(std::string_view key) {
  const std::string_view name = key.substr(key.rfind('/') + 1);
  return name == "zarr.json" || name == ".zarray" || name == ".zgroup" || name == ".zattrs" || name == ".zmetadata";
}

/// The part of an object that a range names.
Buffer cut(Buffer object, const ByteRange& range) {
  const std::uint64_t size = object.size();
  const std::uint64_t begin = range.from_end ? size - std::min(range.length, size) : std::min(range.offset, size);
  const std::uint64_t length = std::min(range.length, size - begin);
  if (begin > 0 && length > 0) std::memmove(object.data(), object.data() + begin, length);
  object.truncate(length);
  return object;
}

Error changed(const std::string& where) {
  return Error(ErrorCode::stale, "the object has changed since it was first read; mount again to see the new one",
               where);
}

class DiskCache final : public Store {
 public:
  DiskCache(std::shared_ptr<Store> parent, DiskCacheOptions options)
      : realm_(parent->url() + '\n' + options.realm + '\n'),
        trust_(options.trust),
        files_(options.directory, {.limit = options.limit, .touch_after = options.touch_after}),
        writer_(files_, {options.queue, options.wait_for_disk, std::move(options.warn)}),
        parent_(std::move(parent)) {}

  std::string url() const override { return parent_->url(); }
  bool is_local() const override { return false; }
  bool can_list() const override { return parent_->can_list(); }
  std::vector<Entry> list(const std::string& prefix) override { return parent_->list(prefix); }

  std::optional<std::uint64_t> size(const std::string& key) override {
    check_key(key);
    if (const std::optional<Seen> seen = seen_of(key); seen && seen->size != CacheFiles::Version::kUnknown)
      return seen->size;
    // Metadata is read next: the same round trip brings or confirms it.
    if (!is_metadata(key)) return parent_->size(key);
    const std::optional<Buffer> bytes = read(key, {});
    return bytes ? std::optional<std::uint64_t>(bytes->size()) : std::nullopt;
  }

  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    std::promise<ReadOutcome> result;
    read_async(key, range, [&result](ReadOutcome outcome) { result.set_value(std::move(outcome)); });
    ReadOutcome outcome = result.get_future().get();
    if (const auto* error = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*error);
    return std::move(std::get<std::optional<Buffer>>(outcome));
  }

  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override {
    const std::optional<Buffer> bytes = read(key, {offset, out.size()});
    if (!bytes) return std::nullopt;
    std::copy_n(bytes->data(), bytes->size(), out.data());
    const std::optional<std::uint64_t> object_size = size(key);
    if (!object_size) throw changed(url() + "/" + key);
    return PartRead{bytes->size(), *object_size};
  }

  void read_async(const std::string& key, ByteRange range, ReadDone done) override {
    std::optional<Kept> kept;
    std::optional<Seen> current;
    try {
      check_key(key);
      current = seen_of(key);
      kept = find(key, range, current);
    } catch (...) {
      return done(std::current_exception());
    }
    if (kept && (current || (trust_ && !is_metadata(key)))) {
      ++hits_;
      hit_bytes_ += kept->bytes.size();
      return done(std::move(kept->bytes));
    }
    const auto shared = std::make_shared<std::optional<Kept>>(std::move(kept));
    const std::string known = *shared ? (*shared)->version.text : std::string();
    parent_->read_version_async(
        key, range, known, [this, key, range, shared, done = std::move(done)](auto outcome) {
          arrived(key, range, std::move(*shared), std::move(outcome), done);
        });
  }

  void read_version_async(const std::string& key, ByteRange range, const std::string&, VersionedDone done) override {
    read_async(key, range, [this, key, done = std::move(done)](ReadOutcome outcome) {
      if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(std::move(*error));
      VersionedRead read;
      read.bytes = std::move(std::get<std::optional<Buffer>>(outcome));
      if (const std::optional<Seen> seen = seen_of(key); seen && seen->size != CacheFiles::Version::kUnknown)
        read.object_size = seen->size;
      done(std::move(read));
    });
  }

  void stop() override { parent_->stop(); }

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
    return all;
  }

 private:
  /// An object as it was when it was first read since the store was opened.
  struct Seen {
    std::uint64_t version;  // digest
    std::uint64_t size;
  };
  /// What is kept of what is wanted.
  struct Kept {
    CacheFiles::Version version;
    Buffer bytes;
    CacheFiles::Name name;
  };

  CacheFiles::Name name_of(const std::string& key, const ByteRange& range) const {
    const std::uint64_t offset = range.from_end ? 0 : range.offset;
    return CacheFiles::name_of(fmt::format("{}{}\n{}{}+{}", realm_, key, range.from_end ? "end-" : "", offset, range.length));
  }

  /// Of the version `current`, if that is known; what is of another one is removed.
  std::optional<Kept> find(const std::string& key, const ByteRange& range, const std::optional<Seen>& current) {
    for (const ByteRange& kept_range : {range, ByteRange{}}) {
      const bool part = is_whole(kept_range) && !is_whole(range);
      const CacheFiles::Name name = name_of(key, kept_range);
      std::optional<CacheFiles::Entry> entry = files_.get(name, part ? kLargestForPart : kLargestEntry);
      if (entry && current && digest(entry->version) != current->version) {
        files_.remove(name);
        entry.reset();
      }
      if (entry)
        return Kept{std::move(entry->version), part ? cut(std::move(entry->bytes), range) : std::move(entry->bytes), name};
      if (is_whole(range)) break;
    }
    return std::nullopt;
  }

  /// The parent's answer. On a thread that must not block.
  void arrived(const std::string& key, const ByteRange& range, std::optional<Kept> kept,
               std::variant<VersionedRead, std::exception_ptr> outcome, const ReadDone& done) {
    if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(std::move(*error));
    VersionedRead& read = std::get<VersionedRead>(outcome);
    if (read.unchanged && kept) {
      if (!see(key, kept->version)) return done(std::make_exception_ptr(changed(url() + "/" + key)));
      ++confirmed_;
      hit_bytes_ += kept->bytes.size();
      return done(std::move(kept->bytes));
    }
    ++misses_;
    if (!read.bytes) {
      // What was there a moment ago has been deleted: missing would become fill values.
      if (seen_of(key)) return done(std::make_exception_ptr(changed(url() + "/" + key)));
      return done(std::nullopt);
    }
    if (read.version.empty()) return done(std::move(read.bytes));
    CacheFiles::Version version{std::move(read.version), read.object_size.value_or(CacheFiles::Version::kUnknown)};
    if (!see(key, version)) return done(std::make_exception_ptr(changed(url() + "/" + key)));
    writer_.write(name_of(key, range), std::move(version), std::move(*read.bytes), done);
  }

  /// Weak and strong tags of one object differ in the prefix only (a server that compresses, or not).
  static std::uint64_t digest(const CacheFiles::Version& version) {
    std::string_view text = version.text;
    if (text.starts_with("W/")) text.remove_prefix(2);
    return CacheFiles::name_of(text).words[0];
  }

  std::optional<Seen> seen_of(const std::string& key) {
    const std::uint64_t name = CacheFiles::name_of(key).words[0];
    const std::lock_guard lock(mutex_);
    const auto it = seen_.find(name);
    return it == seen_.end() ? std::nullopt : std::optional(it->second);
  }
  /// False when it had another version.
  bool see(const std::string& key, const CacheFiles::Version& version) {
    const std::uint64_t name = CacheFiles::name_of(key).words[0];
    const Seen now{digest(version), version.object_size};
    const std::lock_guard lock(mutex_);
    const auto it = seen_.find(name);
    if (it != seen_.end()) return it->second.version == now.version;
    if (seen_.size() < kMostSeen) seen_.emplace(name, now);
    return true;
  }

  const std::string realm_;
  const bool trust_;
  std::atomic<std::uint64_t> hits_{0}, confirmed_{0}, misses_{0}, hit_bytes_{0};
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Seen> seen_;  // by digest of the key
  CacheFiles files_;
  CacheWriter writer_;
  std::shared_ptr<Store> parent_;  // last: its callbacks, which end with it, use all of the above
};

}  // namespace

std::shared_ptr<Store> open_disk_cache(std::shared_ptr<Store> parent, DiskCacheOptions options) {
  return std::make_shared<DiskCache>(std::move(parent), std::move(options));
}

}  // namespace batchfs
