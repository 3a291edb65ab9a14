#include "engine/store/references/reference_store.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/awaited.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "engine/store/fingerprint.h"
#include "engine/store/object_versions.h"
#include "engine/store/references/location.h"
#include "engine/store/virtual/virtual_places.h"

namespace batchfs::references {

namespace {

class TableReferences final : public References {
 public:
  TableReferences(std::shared_ptr<const ReferenceTable> table, std::string digest,
                  std::string where)
      : table_(std::move(table)), digest_(std::move(digest)), where_(std::move(where)) {
    // It may be out of date, and contains nothing that the other documents lack.
    for (const char* document : {"zarr.json", ".zgroup", ".zarray"})
      hides_consolidated_ = hides_consolidated_ || table_->has(document);
  }

  void find(const std::string& key, Done done) override {
    if (hides_consolidated_ && key == kConsolidated) return done(std::nullopt);
    done(outcome_of(*table_, key, nullptr));
  }
  std::vector<Store::Entry> list(const std::string& prefix) override {
    std::vector<Store::Entry> entries = table_->list(prefix, where_);
    if (hides_consolidated_ && prefix.empty())
      std::erase_if(entries, [](const Store::Entry& entry) { return entry.name == kConsolidated; });
    return entries;
  }
  std::string digest() const override { return digest_; }
  std::uint64_t memory() const override { return table_->memory(); }
  ReferenceTable::Problems problems() const override { return table_->problems(); }
  std::vector<std::pair<std::string, std::string>> folders(
      const std::string& place) const override {
    CommonFolders folders;
    for (std::size_t i = 0; i < table_->files(); ++i) {
      try {
        const std::string location = absolute_location(table_->file(i), place);
        if (!location.starts_with(place)) folders.add(location);
      } catch (const Error&) {
        continue;  // an Error for its reader
      }
    }
    return folders.take();
  }

 private:
  static constexpr const char* kConsolidated = ".zmetadata";
  const std::shared_ptr<const ReferenceTable> table_;
  const std::string digest_, where_;
  bool hides_consolidated_ = false;
};

struct PartOfChunk {
  std::uint64_t begin = 0, length = 0;
};

PartOfChunk part_of(const ByteRange& range, std::uint64_t size) {
  const std::uint64_t begin =
      range.from_end ? size - std::min(range.length, size) : std::min(range.offset, size);
  return {begin, std::min(range.length, size - begin)};
}

/// `file`: as the set names it.
Error with_remedy(const Error& error, std::string_view file) {
  const bool is_signed = file.starts_with("http") && file.find('?') < file.size();
  if (is_signed && error.code() == ErrorCode::access_denied)
    return Error(error.code(),
                 error.why() +
                     "; the reference has a signature, which may have expired: make the references "
                     "again, or give --virtual PREFIX=URL?SIGNATURE",
                 error.where());
  if (!file.empty() && is_relative(file) && VirtualPlaces::is_gone(error))
    return Error(error.code(),
                 fmt::format("{}; the set names it '{}', relative to the set's directory",
                             error.why(), printable(file)),
                 error.where());
  return error;
}

class ReferenceStore final : public Store {
 public:
  ReferenceStore(std::string url, std::shared_ptr<References> references,
                 const ReferencePlaces& places)
      : url_(std::move(url)),
        references_(std::move(references)),
        own_(places.own),
        place_(place_of_store(*own_)),
        outside_(own_, places.outside,
                 {.whole = "reference set's directory",
                  .list = "reference set",
                  .encoded = false,
                  .containers = references_->folders(place_),
                  .queries = places.queries},
                 places.open),
        is_local_(own_->is_local() && outside_.are_local()) {}

  std::string url() const override { return url_; }
  bool is_local() const override { return is_local_; }
  bool is_fixed() const override { return true; }
  void stop() override { outside_.stop(); }  // its own place is one of them
  std::optional<Speed> speed() const override { return own_->speed(); }
  std::string content_id() const override { return references_->digest(); }
  std::uint64_t held_memory() const override { return references_->memory(); }
  bool can_list() const override { return references_->can_list(); }
  ReferenceTable::Problems problems() const { return references_->problems(); }

  std::vector<Counter> counters() const override {
    std::vector<Counter> all = own_->counters();
    for (Counter& counter : references_->counters()) all.push_back(std::move(counter));
    return all;
  }

  std::vector<Entry> list(const std::string& prefix) override {
    if (!prefix.empty()) check_key(prefix);
    return references_->list(prefix);
  }

  /// The state of the file that the key's bytes lie in, and of the document that refers to it.
  std::optional<std::uint64_t> state(const std::string& key) override {
    const std::optional<References::Found> found = find(key);
    if (!found) return 0;
    try {
      std::uint64_t states[2] = {1, 1};
      const std::string document = references_->document_of(key);
      const bool has_file = found->target.kind != Target::Kind::within;
      if (!document.empty()) {
        const auto state = outside_.state(place_ + document);
        if (!state) return std::nullopt;
        states[0] = *state;
      }
      if (has_file) {
        const auto state = outside_.state(absolute_location(found->target.file, place_));
        if (!state) return std::nullopt;
        states[1] = *state;
      }
      return lasting_digest(fmt::format("{} {}", states[0], states[1]));
    } catch (const Error& error) {
      throw with_remedy(error, found->target.file).at(where(key));
    }
  }

  std::optional<std::uint64_t> size(const std::string& key) override {
    const std::optional<References::Found> found = find(key);
    if (!found) return std::nullopt;
    try {
      return size_of(found->target);
    } catch (const Error& error) {
      throw with_remedy(error, found->target.file).at(where(key));
    }
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
    const std::optional<References::Found> found = find(key);
    if (!found) return std::nullopt;
    const Target& target = found->target;
    try {
      const std::uint64_t size = size_of(target);
      const PartOfChunk part = part_of({offset, out.size()}, size);
      if (part.length == 0) return PartRead{0, size};
      if (target.kind == Target::Kind::within) {
        std::memcpy(out.data(), target.bytes.data() + part.begin, part.length);
        return PartRead{part.length, size};
      }
      const std::string location = absolute_location(target.file, place_);
      const VirtualPlaces::File file = outside_.find(location);
      const auto got =
          file.store->read_into(file.key, target.offset + part.begin, out.first(part.length));
      if (!got) throw VirtualPlaces::gone(file.shown);
      if (got->bytes != part.length) throw outside_.too_short();
      return PartRead{part.length, size};
    } catch (const Error& error) {
      throw with_remedy(error, target.file).at(where(key));
    }
  }

 private:
  std::string where(const std::string& key) const { return url_ + "/" + key; }

  std::uint64_t size_of(const Target& target) {
    if (target.kind == Target::Kind::within) return target.bytes.size();
    if (target.kind == Target::Kind::range) return target.length;
    const VirtualPlaces::File file = outside_.find(absolute_location(target.file, place_));
    const std::optional<std::uint64_t> size = file.store->size(file.key);
    if (!size) throw VirtualPlaces::gone(file.shown);
    return *size;
  }

  /// Waits.
  std::optional<References::Found> find(const std::string& key) {
    try {
      check_key(key);
      return awaited<References::Outcome>(
          [&](auto done) { references_->find(key, std::move(done)); });
    } catch (Error& error) {
      throw error.at(where(key));
    }
  }

  void start(const std::string& key, ByteRange range, ReadDone done, bool past_caches = false) {
    try {
      check_key(key);
    } catch (Error& error) {
      return done(std::make_exception_ptr(error.at(where(key))));
    }
    references_->find(key, [this, key, range, past_caches, done](References::Outcome outcome) {
      try {
        if (const auto* thrown = std::get_if<std::exception_ptr>(&outcome))
          std::rethrow_exception(*thrown);
        const auto& found = std::get<std::optional<References::Found>>(outcome);
        if (!found) return done(std::nullopt);
        read_target(key, found->target, range, past_caches, done);
      } catch (const Error& error) {
        done(std::make_exception_ptr(Error(error).at(where(key))));
      } catch (...) {
        done(std::current_exception());
      }
    });
  }

  void read_target(const std::string& key, const Target& target, const ByteRange& range,
                   bool past_caches, const ReadDone& done) {
    // The target's texts live no longer than this call.
    const auto finish = [this, key, done, file = std::string(target.file)](ReadOutcome outcome) {
      try {
        if (const auto* thrown = std::get_if<std::exception_ptr>(&outcome))
          std::rethrow_exception(*thrown);
      } catch (Error& error) {
        outcome = std::make_exception_ptr(with_remedy(error, file).at(where(key)));
      } catch (...) {
        outcome = std::current_exception();
      }
      done(std::move(outcome));
    };
    if (target.kind == Target::Kind::whole) return read_whole(target, range, past_caches, finish);
    const std::uint64_t size =
        target.kind == Target::Kind::within ? target.bytes.size() : target.length;
    if (size > range.largest)
      throw Error(ErrorCode::corrupt, fmt::format("it has {}, at most {} were expected",
                                                  format_size(size), format_size(range.largest)));
    const PartOfChunk part = part_of(range, size);
    if (target.kind == Target::Kind::within || part.length == 0) {
      Buffer copy(part.length);
      if (part.length > 0) std::memcpy(copy.data(), target.bytes.data() + part.begin, part.length);
      return done(std::move(copy));
    }
    const std::string location = absolute_location(target.file, place_);
    outside_.read_async({location, {}, 0}, {target.offset + part.begin, part.length}, finish,
                        past_caches);
  }

  /// The file's own size counts.
  void read_whole(const Target& target, const ByteRange& range, bool past_caches,
                  const ReadDone& done) {
    const VirtualPlaces::File file = outside_.find(absolute_location(target.file, place_));
    const auto take = [done, shown = file.shown](ReadOutcome outcome) {
      const auto* bytes = std::get_if<std::optional<Buffer>>(&outcome);
      if (bytes != nullptr && !*bytes)
        outcome = std::make_exception_ptr(VirtualPlaces::gone(shown));
      done(std::move(outcome));
    };
    if (past_caches)
      read_past_caches(*file.store, file.key, range, take);
    else
      file.store->read_async(file.key, range, take);
  }

  const std::string url_;
  const std::shared_ptr<References> references_;
  const std::shared_ptr<Store> own_;
  const std::string place_;  // URL, ends in '/'
  VirtualPlaces outside_;
  const bool is_local_;
};

}  // namespace

std::shared_ptr<References> references_of(std::shared_ptr<const ReferenceTable> table,
                                          std::string digest, const std::string& where) {
  return std::make_shared<TableReferences>(std::move(table), std::move(digest), where);
}

References::Outcome outcome_of(const ReferenceTable& table, std::string_view key,
                               std::shared_ptr<const void> holder) {
  try {
    const std::optional<Target> target = table.find(key);
    if (!target) return std::nullopt;
    return References::Found{*target, std::move(holder)};
  } catch (...) {
    return std::current_exception();
  }
}

ReferenceTable::Problems problems_of_references(const Store& store) {
  const auto* const set = dynamic_cast<const ReferenceStore*>(&store);
  return set == nullptr ? ReferenceTable::Problems() : set->problems();
}

std::shared_ptr<Store> open_reference_store(std::string url, std::shared_ptr<References> references,
                                            const ReferencePlaces& places) {
  return std::make_shared<ReferenceStore>(std::move(url), std::move(references), places);
}

}  // namespace batchfs::references
