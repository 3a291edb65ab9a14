#include "engine/store/zip/zip_store.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <type_traits>

#include <fmt/format.h>
#include <libdeflate.h>
#include <zlib.h>

#include "engine/base/awaited.h"
#include "engine/base/budget.h"
#include "engine/base/strings.h"
#include "engine/store/deflate_decoder.h"
#include "engine/store/little_endian.h"
#include "engine/store/object_versions.h"
#include "engine/store/zip/zip_directory.h"

namespace batchfs {

namespace {

constexpr std::uint32_t kHeaderSignature = 0x04034b50;
constexpr std::size_t kHeaderSize = 30;
constexpr std::uint16_t kStored = 0, kDeflate = 8;
constexpr std::uint16_t kEncrypted = 1 << 0, kSizesFollow = 1 << 3;

/// Deflate cannot do better (zlib's technical notes).
constexpr std::uint64_t kMaxRatio = 1032;
constexpr std::uint64_t kMaxInflated = std::uint64_t{4} << 30;

/// Deflate takes at most nine bits for a byte, and this many bytes for the description of a block
/// or two.
constexpr std::uint64_t kDeflateSlack = 4096;

/// A local header's extra field is longer than the directory's by Info-ZIP's additions, and by this
/// at most in practice; else a second read fetches the rest.
constexpr std::uint64_t kExtraSlack = 64;
/// Bytes between a member's beginning and the wanted part that are read along to save a second
/// read.
constexpr std::uint64_t kNear = 64 << 10;

struct ClippedRange {
  std::uint64_t begin = 0, length = 0;
};

ClippedRange clipped(ByteRange range, std::uint64_t size) {
  if (range.from_end) range.offset = size - std::min(range.length, size);
  const std::uint64_t begin = std::min(range.offset, size);
  return {begin, std::min(range.length, size - begin)};
}

const char* method_name(std::uint16_t method) {
  switch (method) {
    case 9:
      return "deflate64";
    case 12:
      return "bzip2";
    case 14:
      return "LZMA";
    case 93:
      return "zstd";
    case 95:
      return "xz";
    default:
      return "unknown";
  }
}

Error corrupt(const std::string& why) { return Error(ErrorCode::corrupt, why); }

/// The outcome's bytes, which must be as many as were requested: a member cannot be missing any
/// more.
Buffer take(ReadOutcome outcome, std::uint64_t length) {
  if (const auto* error = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*error);
  auto& bytes = std::get<std::optional<Buffer>>(outcome);
  if (!bytes) throw Error(ErrorCode::stale, "the archive is gone");
  if (bytes->size() != length) throw corrupt("the archive is shorter than its directory says");
  return std::move(*bytes);
}

Buffer inflate_whole(std::span<const std::byte> in, std::uint64_t size) {
  Buffer out(size);
  std::size_t got = 0;
  if (libdeflate_deflate_decompress(deflate_decoder(), in.data(), in.size(), out.data(), out.size(),
                                    &got) != LIBDEFLATE_SUCCESS ||
      got != size)
    throw corrupt(
        "the compressed data are damaged, or not as long as the archive's directory says");
  return out;
}

/// Only as far as the part reaches, in memory of the part's size.
Buffer inflate_part(std::span<const std::byte> in, ClippedRange part) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    throw Error(ErrorCode::no_memory, "no memory for the deflate decoder");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ender(&stream, inflateEnd);
  Buffer out(part.length);
  std::byte skipped[32 << 10];
  std::uint64_t done = 0;
  while (done < part.begin + part.length) {
    const bool skip = done < part.begin;
    std::byte* const to = skip ? skipped : out.data() + (done - part.begin);
    const std::uint64_t room = skip ? std::min<std::uint64_t>(sizeof skipped, part.begin - done)
                                    : part.begin + part.length - done;
    stream.next_out = reinterpret_cast<Bytef*>(to);
    stream.avail_out = static_cast<uInt>(std::min<std::uint64_t>(room, 1 << 30));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream.avail_in = static_cast<uInt>(std::min<std::size_t>(in.size(), 1 << 30));
    const uInt had_in = stream.avail_in, had_out = stream.avail_out;
    const int result = inflate(&stream, Z_NO_FLUSH);
    const uInt used = had_in - stream.avail_in, got = had_out - stream.avail_out;
    in = in.subspan(used);
    done += got;
    const bool ended = result == Z_STREAM_END && done < part.begin + part.length;
    if (ended || (result != Z_OK && result != Z_STREAM_END) || (used == 0 && got == 0))
      throw corrupt(
          "the compressed data are damaged, or shorter than the archive's directory says");
  }
  return out;
}

/// The place as users typed it.
std::string place_in(const Store& parent, const std::string& key) {
  const std::string url = parent.url();
  if (url == ".") return key;
  return url.ends_with('/') ? url + key : url + "/" + key;
}

class ZipStore final : public Store {
 public:
  ZipStore(std::shared_ptr<Store> parent, std::string key, std::uint64_t memory)
      : key_(std::move(key)),
        url_(place_in(*parent, key_)),
        directory_(
            ZipDirectory::read(*parent, key_, memory != 0 ? memory : default_memory_budget())),
        data_offsets_(directory_.members().size()),
        parent_(std::move(parent)) {}

  std::string url() const override { return url_; }
  bool is_local() const override { return parent_->is_local(); }
  bool is_fixed() const override { return true; }
  void stop() override { parent_->stop(); }
  std::vector<Counter> counters() const override { return parent_->counters(); }

  std::optional<std::uint64_t> size(const std::string& key) override {
    check_key(key);
    const ZipMember* member = directory_.find(key);
    return member == nullptr ? std::nullopt : std::optional(member->size);
  }

  std::vector<Entry> list(const std::string& prefix) override {
    if (!prefix.empty()) check_key(prefix);
    return directory_.list(prefix);
  }

  /// The state of the archive: a member does not change alone.
  std::optional<std::uint64_t> state(const std::string&) override {
    if (is_local()) return parent_->state(key_);
    // Once requested, another version of the archive is stale.
    const std::lock_guard lock(state_mutex_);
    if (!state_) state_ = parent_->state(key_);
    return state_;
  }

  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    if (is_local()) {
      return at_member(key, [&]() -> std::optional<Buffer> {
        const std::optional<Wanted> wanted = want(key, range);
        if (!wanted) return std::nullopt;
        if (wanted->part.length == 0) return Buffer();
        const std::uint64_t data = locate(*wanted->member);
        const ClippedRange stored = wanted->stored();
        return finish(*wanted, take(parent_->read(key_, {data + stored.begin, stored.length}),
                                    stored.length));
      });
    }
    return awaited<ReadOutcome>([&](ReadDone done) { read_async(key, range, std::move(done)); });
  }

  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override {
    return at_member(key, [&]() -> std::optional<PartRead> {
      const std::optional<Wanted> wanted = want(key, {offset, out.size()});
      if (!wanted) return std::nullopt;
      const ZipMember& member = *wanted->member;
      const ClippedRange part = wanted->part;
      if (member.method != kStored) {
        const std::optional<Buffer> bytes = read(key, {offset, out.size()});
        std::copy_n(bytes->data(), bytes->size(), out.data());
        return PartRead{bytes->size(), member.size};
      }
      out = out.first(part.length);
      if (out.empty()) return PartRead{0, member.size};
      const std::optional<PartRead> got =
          parent_->read_into(key_, locate(member) + part.begin, out);
      if (!got) throw Error(ErrorCode::stale, "the archive is gone");
      if (got->bytes != part.length)
        throw corrupt("the archive is shorter than its directory says");
      if (part.length == member.size) check_crc(member, out);
      return PartRead{part.length, member.size};
    });
  }

  void read_async(const std::string& key, ByteRange range, ReadDone done) override {
    if (is_local()) return Store::read_async(key, range, std::move(done));
    start(key, range, false, std::move(done));
  }

  void read_version_async(const std::string& key, ByteRange range, const std::string& known,
                          VersionedDone done) override {
    if (known != kNoVersion || is_local())
      return Store::read_version_async(key, range, known, std::move(done));
    start(key, range, true, as_versioned(std::move(done)));
  }

 private:
  void start(const std::string& key, const ByteRange& range, bool past_caches, ReadDone done) {
    done = [this, key, done = std::move(done)](ReadOutcome outcome) {
      if (auto* error = std::get_if<std::exception_ptr>(&outcome)) *error = with_place(*error, key);
      done(std::move(outcome));
    };
    std::optional<Wanted> wanted;
    try {
      wanted = want(key, range);
    } catch (...) {
      return done(std::current_exception());
    }
    if (!wanted) return done(std::nullopt);
    wanted->past_caches = past_caches;
    if (wanted->part.length == 0) return done(Buffer());
    const std::uint64_t data = known_data_offset(*wanted->member);
    if (data != 0) return read_at(*wanted, data, std::move(done));
    if (wanted->stored().begin <= kNear) return read_with_header(*wanted, std::move(done));
    read_at_guess(*wanted, std::move(done));
  }

  /// A part of a member: the caller's bytes, and the stored bytes to read for them.
  struct Wanted {
    const ZipMember* member;
    ClippedRange part;
    bool past_caches = false;
    ClippedRange stored() const {
      if (member->method == kStored) return part;
      // No more than the part can take, if it is compressed at all.
      const std::uint64_t end = part.begin + part.length;
      return {0, end < member->size
                     ? std::min(member->compressed_size, end + end / 8 + kDeflateSlack)
                     : member->compressed_size};
    }
  };

  /// nullopt when there is no such member. Throws for an unreadable one, before anything is read.
  std::optional<Wanted> want(const std::string& key, ByteRange range) const {
    check_key(key);
    const ZipMember* member = directory_.find(key);
    if (member == nullptr) return std::nullopt;
    if (member->size > range.largest)
      throw corrupt(fmt::format("it has {}, at most {} were expected", format_size(member->size),
                                format_size(range.largest)));
    const Wanted wanted{member, clipped(range, member->size)};
    if ((member->flags & kEncrypted) != 0)
      throw Error(ErrorCode::not_supported, "encrypted zip members are not supported");
    if (member->method != kStored && member->method != kDeflate)
      throw Error(
          ErrorCode::not_supported,
          fmt::format("zip members compressed by method {} ({}) are not supported; only stored and "
                      "deflate are",
                      member->method, method_name(member->method)));
    if (member->header_offset == ZipMember::kOutside)
      throw corrupt("the archive's directory places it outside of the archive");
    const std::uint64_t room = member->end - member->header_offset;
    if (room < header_length(*member) || room - header_length(*member) < member->compressed_size)
      throw corrupt("it overlaps the next member of the archive");
    if (member->method == kStored && member->size != member->compressed_size)
      throw corrupt("a stored zip member has two sizes");
    if (member->method == kDeflate) {
      if (member->size / kMaxRatio > member->compressed_size)
        throw corrupt("the archive's directory gives it a size that deflate cannot reach");
      if (wanted.part.length > kMaxInflated)
        throw Error(ErrorCode::not_supported, "a compressed zip member of more than 4 GB");
    }
    return wanted;
  }

  static std::uint64_t header_length(const ZipMember& member) {
    return kHeaderSize + member.name_length;
  }

  std::atomic<std::uint64_t>& slot(const ZipMember& member) {
    return data_offsets_[static_cast<std::size_t>(&member - directory_.members().data())];
  }
  /// 0: its local header has not been read yet.
  std::uint64_t known_data_offset(const ZipMember& member) {
    return slot(member).load(std::memory_order_relaxed);
  }

  /// Where the member's data begin, from its local header (APPNOTE 4.3.7), whose extra field has
  /// its own length. Remembers it.
  std::uint64_t learn(const ZipMember& member, std::span<const std::byte> header) {
    if (little_endian<std::uint32_t>(header, 0) != kHeaderSignature)
      throw corrupt("the archive does not hold it where its directory says");
    const std::string_view name = directory_.name(member);
    if (little_endian<std::uint16_t>(header, 26) != name.size() ||
        std::memcmp(header.data() + kHeaderSize, name.data(), name.size()) != 0)
      throw corrupt("the archive holds another member where its directory places this one");
    const std::uint64_t length = header_length(member) + little_endian<std::uint16_t>(header, 28);
    if (member.end - member.header_offset - member.compressed_size < length)
      throw corrupt("it overlaps the next member of the archive");
    slot(member).store(member.header_offset + length, std::memory_order_relaxed);
    return member.header_offset + length;
  }

  std::uint64_t locate(const ZipMember& member) {
    const std::uint64_t known = known_data_offset(member);
    if (known != 0) return known;
    const std::uint64_t length = header_length(member);
    return learn(member, take(parent_->read(key_, {member.header_offset, length}), length).span());
  }

  static void check_crc(const ZipMember& member, std::span<const std::byte> bytes) {
    if (libdeflate_crc32(0, bytes.data(), bytes.size()) != member.crc)
      throw corrupt("its bytes do not match the checksum in the archive");
  }

  /// Turns the stored bytes into the caller's bytes.
  static Buffer finish(const Wanted& wanted, Buffer bytes) {
    const ZipMember& member = *wanted.member;
    const bool whole = wanted.part.length == member.size;
    if (member.method == kDeflate)
      bytes = whole ? inflate_whole(bytes.span(), member.size)
                    : inflate_part(bytes.span(), wanted.part);
    if (whole) check_crc(member, bytes.span());
    return bytes;
  }

  void read_archive(const Wanted& wanted, const ByteRange& range, ReadDone done) {
    if (wanted.past_caches)
      read_past_caches(*parent_, key_, range, std::move(done));
    else
      parent_->read_async(key_, range, std::move(done));
  }

  void read_at(const Wanted& wanted, std::uint64_t data, ReadDone done) {
    const ClippedRange stored = wanted.stored();
    read_archive(wanted, {data + stored.begin, stored.length},
                 [wanted, done = std::move(done)](ReadOutcome outcome) {
                   try {
                     outcome = finish(wanted, take(std::move(outcome), wanted.stored().length));
                   } catch (...) {
                     outcome = std::current_exception();
                   }
                   done(std::move(outcome));
                 });
  }

  /// Reads the local header and the bytes after it at once.
  void read_with_header(const Wanted& wanted, ReadDone done) {
    const ZipMember& member = *wanted.member;
    const ClippedRange stored = wanted.stored();
    const std::uint64_t length = std::min(
        header_length(member) + member.extra_length + kExtraSlack + stored.begin + stored.length,
        member.end - member.header_offset);
    read_archive(wanted, {member.header_offset, length},
                 [this, wanted, stored, length, done = std::move(done)](ReadOutcome outcome) {
                   std::uint64_t data = 0;
                   bool complete = true;
                   try {
                     Buffer bytes = take(std::move(outcome), length);
                     data = learn(*wanted.member, bytes.span());
                     const std::uint64_t skip = data - wanted.member->header_offset + stored.begin;
                     complete = skip + stored.length <= length;
                     if (complete) {
                       std::memmove(bytes.data(), bytes.data() + skip, stored.length);
                       bytes.truncate(stored.length);
                       outcome = finish(wanted, std::move(bytes));
                     }
                   } catch (...) {
                     outcome = std::current_exception();
                   }
                   if (complete)
                     done(std::move(outcome));
                   else
                     read_at(wanted, data, done);
                 });
  }

  /// Reads the local header, and the part from where it is if the archive has no gaps, at the same
  /// time.
  void read_at_guess(const Wanted& wanted, ReadDone done) {
    const ZipMember& member = *wanted.member;
    const ClippedRange stored = wanted.stored();
    const std::uint64_t earliest = member.header_offset + header_length(member);
    const std::uint64_t latest = member.end - member.compressed_size;
    const std::uint64_t guess = (member.flags & kSizesFollow) != 0
                                    ? std::min(earliest + member.extra_length, latest)
                                    : latest;
    struct Both {
      std::mutex mutex;
      int left = 2;
      ReadOutcome header, part;
    };
    const auto both = std::make_shared<Both>();
    const auto got = [this, both, wanted, guess, done = std::move(done)](ReadOutcome Both::*which,
                                                                         ReadOutcome outcome) {
      {
        const std::lock_guard lock(both->mutex);
        (*both).*which = std::move(outcome);
        if (--both->left > 0) return;
      }
      std::uint64_t data = guess;
      try {
        data = learn(*wanted.member,
                     take(std::move(both->header), header_length(*wanted.member)).span());
        if (data == guess)
          both->part = finish(wanted, take(std::move(both->part), wanted.stored().length));
      } catch (...) {
        both->part = std::current_exception();
      }
      if (data == guess)
        done(std::move(both->part));
      else
        read_at(wanted, data, done);
    };
    read_archive(wanted, {member.header_offset, header_length(member)},
                 [got](ReadOutcome outcome) { got(&Both::header, std::move(outcome)); });
    read_archive(wanted, {guess + stored.begin, stored.length},
                 [got](ReadOutcome outcome) { got(&Both::part, std::move(outcome)); });
  }

  template <class Body>
  std::invoke_result_t<Body> at_member(const std::string& key, Body&& body) const {
    try {
      return body();
    } catch (Error& error) {
      throw error.at(url_ + "/" + key);
    }
  }

  std::exception_ptr with_place(const std::exception_ptr& failure, const std::string& key) const {
    try {
      std::rethrow_exception(failure);
    } catch (Error& error) {
      return std::make_exception_ptr(error.at(url_ + "/" + key));
    } catch (...) {
      return failure;
    }
  }

  const std::string key_, url_;
  const ZipDirectory directory_;
  std::vector<std::atomic<std::uint64_t>> data_offsets_;
  std::mutex state_mutex_;  // guards state_
  std::optional<std::uint64_t> state_;
  /// Last: its callbacks use all of the above, and end with it.
  const std::shared_ptr<Store> parent_;
};

}  // namespace

std::shared_ptr<Store> open_zip_store(std::shared_ptr<Store> parent, std::string key,
                                      std::uint64_t memory) {
  const std::string place = place_in(*parent, key);
  try {
    return std::make_shared<ZipStore>(std::move(parent), std::move(key), memory);
  } catch (Error& error) {
    throw error.at(place);
  }
}

}  // namespace batchfs
