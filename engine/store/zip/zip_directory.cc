#include "engine/store/zip/zip_directory.h"

#include <algorithm>
#include <future>
#include <tuple>

#include <fmt/format.h>

#include "engine/base/limits.h"
#include "engine/base/strings.h"
#include "engine/store/little_endian.h"

namespace batchfs {

namespace {

constexpr std::uint32_t kEntrySignature = 0x02014b50, kEndSignature = 0x06054b50;
constexpr std::uint32_t kEnd64Signature = 0x06064b50, kLocator64Signature = 0x07064b50;
constexpr std::size_t kEntrySize = 46, kEndSize = 22, kEnd64Size = 56, kLocator64Size = 20;
constexpr std::size_t kMaxComment = 0xffff;
constexpr std::uint64_t kMaxDirectory = 1 << 30;  // about ten million members

/// Bytes read at once from the object's end. A comment can put the end record up to 64 KiB before
/// the end; the directories of some thousand members fit too, which saves a round trip.
constexpr std::uint64_t kTail = 512 << 10;

/// The end of the object, and the rest of it on demand.
class Archive {
 public:
  Archive(Store& parent, const std::string& key) : parent_(parent), key_(key) {
    // The tail and the size arrive in one round trip.
    // Shared: a thread may still be inside of set_value() when this one continues.
    const auto tail = std::make_shared<std::promise<ReadOutcome>>();
    parent.read_async(key, {0, kTail, true},
                      [tail](ReadOutcome outcome) { tail->set_value(std::move(outcome)); });
    std::optional<std::uint64_t> size;
    std::exception_ptr failure;
    try {
      size = parent.size(key);
    } catch (...) {
      failure = std::current_exception();
    }
    ReadOutcome outcome = tail->get_future().get();
    if (failure) std::rethrow_exception(failure);
    if (const auto* error = std::get_if<std::exception_ptr>(&outcome))
      std::rethrow_exception(*error);
    std::optional<Buffer>& bytes = std::get<std::optional<Buffer>>(outcome);
    if (!size || !bytes) throw Error(ErrorCode::not_found, "no such file");
    if (bytes->size() != std::min(*size, kTail)) throw changed();
    size_ = *size;
    tail_ = std::move(*bytes);
  }

  std::uint64_t size() const { return size_; }
  std::span<const std::byte> tail() const { return tail_.span(); }
  std::uint64_t tail_offset() const { return size_ - tail_.size(); }

  /// `length` bytes at `offset`, which must be inside. Valid until the next call.
  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t length) {
    if (offset >= tail_offset()) return tail().subspan(offset - tail_offset(), length);
    std::optional<Buffer> bytes = parent_.read(key_, {offset, length});
    if (!bytes || bytes->size() != length) throw changed();
    read_ = std::move(*bytes);
    return read_.span();
  }

 private:
  static Error changed() {
    return Error(ErrorCode::stale, "the archive changed while it was opened");
  }

  Store& parent_;
  const std::string& key_;
  std::uint64_t size_ = 0;
  Buffer tail_, read_;
};

Error damaged(const std::string& what) {
  return Error(ErrorCode::corrupt, "not a zip archive, or a damaged one: " + what);
}

Error several_disks() {
  return Error(ErrorCode::not_supported,
               "zip archives in several parts are not supported; join them");
}

/// Where the end record lies (APPNOTE 4.3.16): the last one whose comment reaches the end of the
/// object, else the last that fits (bytes follow the archive).
std::uint64_t find_end(const Archive& archive) {
  const std::span<const std::byte> tail = archive.tail();
  const std::size_t lowest = tail.size() - std::min(tail.size(), kEndSize + kMaxComment);
  std::optional<std::size_t> found;
  for (std::size_t i = tail.size() < kEndSize ? 0 : tail.size() - kEndSize + 1; i-- > lowest;) {
    if (little_endian<std::uint32_t>(tail, i) != kEndSignature) continue;
    const std::size_t end = i + kEndSize + little_endian<std::uint16_t>(tail, i + 20);
    if (end == tail.size()) return archive.tail_offset() + i;
    if (end < tail.size() && !found) found = i;
  }
  if (!found) throw damaged("it has no end record; was it copied whole?");
  return archive.tail_offset() + *found;
}

struct Extent {
  std::uint64_t offset = 0;  // as the archive counts, without bytes before it
  std::uint64_t size = 0;
  std::uint64_t end = 0;  // in the object
};

Extent find_directory(Archive& archive) {
  const std::uint64_t end_offset = find_end(archive);
  const std::span<const std::byte> end = archive.at(end_offset, kEndSize);
  const std::uint16_t disk = little_endian<std::uint16_t>(end, 4),
                      first_disk = little_endian<std::uint16_t>(end, 6);
  Extent directory{little_endian<std::uint32_t>(end, 16), little_endian<std::uint32_t>(end, 12),
                   end_offset};

  // Zip64 (APPNOTE 4.3.14, 4.3.15): a locator before the end record. Its record counts whether or
  // not the end record's fields would have sufficed.
  if (end_offset >= kLocator64Size + kEnd64Size) {
    const std::uint64_t locator_offset = end_offset - kLocator64Size;
    const std::span<const std::byte> locator = archive.at(locator_offset, kLocator64Size);
    if (little_endian<std::uint32_t>(locator, 0) == kLocator64Signature) {
      if (little_endian<std::uint32_t>(locator, 16) > 1) throw several_disks();
      // Bytes before the archive shift the offset; then the record is right before the locator.
      const std::uint64_t written = little_endian<std::uint64_t>(locator, 8);
      for (const std::uint64_t offset : {written, locator_offset - kEnd64Size}) {
        if (offset > locator_offset - kEnd64Size) continue;
        const std::span<const std::byte> end64 = archive.at(offset, kEnd64Size);
        if (little_endian<std::uint32_t>(end64, 0) != kEnd64Signature) continue;
        if (little_endian<std::uint32_t>(end64, 16) != 0 ||
            little_endian<std::uint32_t>(end64, 20) != 0)
          throw several_disks();
        return {little_endian<std::uint64_t>(end64, 48), little_endian<std::uint64_t>(end64, 40),
                offset};
      }
      throw damaged("its Zip64 end record is not where it should be");
    }
  }
  if (disk != 0 || first_disk != 0) throw several_disks();
  return directory;
}

/// Takes the 64-bit values out of the Zip64 field (APPNOTE 4.5.3), which holds those that the entry
/// itself could not, in this order. False when it lacks one.
bool read_zip64(std::span<const std::byte> extra, std::initializer_list<std::uint64_t*> values) {
  std::span<const std::byte> field;
  while (extra.size() >= 4) {
    const std::size_t length = little_endian<std::uint16_t>(extra, 2);
    if (length > extra.size() - 4) break;
    if (little_endian<std::uint16_t>(extra, 0) == 1) {
      field = extra.subspan(4, length);
      break;
    }
    extra = extra.subspan(4 + length);
  }
  for (std::uint64_t* value : values) {
    if (*value != UINT32_MAX) continue;
    if (field.size() < 8) return false;
    *value = little_endian<std::uint64_t>(field, 0);
    field = field.subspan(8);
  }
  return true;
}

bool is_usable(std::string_view name) {
  if (name.ends_with('/')) name.remove_suffix(1);
  return is_key(name);
}

}  // namespace

ZipDirectory ZipDirectory::read(Store& parent, const std::string& key, std::uint64_t memory) {
  Archive archive(parent, key);
  const Extent extent = find_directory(archive);
  if (extent.offset > extent.end || extent.size > extent.end - extent.offset)
    throw damaged("its directory does not fit into it");
  if (extent.size > kMaxDirectory)
    throw Error(ErrorCode::not_supported, "the archive's directory is larger than 1 GB");
  // The members, twice while their list grows, their names, and the directory itself meanwhile.
  constexpr std::uint64_t kPerByte =
      2 + (2 * sizeof(ZipMember) + sizeof(std::uint64_t)) / kEntrySize;
  if (extent.size > std::max(memory, kFreeMetadata) / kPerByte)
    throw Error(
        ErrorCode::no_memory,
        fmt::format("the archive's directory has {}, and takes up to {} of memory; give more with "
                    "--memory",
                    format_size(extent.size), format_size(kPerByte * extent.size)));
  const std::uint64_t offset = extent.end - extent.size;
  ZipDirectory directory;
  directory.parse(archive.at(offset, extent.size), offset, offset - extent.offset);
  directory.set_ends(offset);
  directory.sort_by_name();
  return directory;
}

void ZipDirectory::parse(std::span<const std::byte> in, std::uint64_t directory_offset,
                         std::uint64_t prefix) {
  // APPNOTE 4.3.12. The directory's size counts, not its number of entries, which wraps in old
  // writers.
  while (!in.empty()) {
    if (in.size() < kEntrySize || little_endian<std::uint32_t>(in, 0) != kEntrySignature)
      throw damaged("its directory breaks off");
    const std::size_t name_length = little_endian<std::uint16_t>(in, 28);
    const std::size_t extra_length = little_endian<std::uint16_t>(in, 30);
    const std::size_t length =
        kEntrySize + name_length + extra_length + little_endian<std::uint16_t>(in, 32);
    if (length > in.size()) throw damaged("its directory breaks off");
    const std::string_view name(reinterpret_cast<const char*>(in.data()) + kEntrySize, name_length);

    ZipMember member;
    member.flags = little_endian<std::uint16_t>(in, 8);
    member.method = little_endian<std::uint16_t>(in, 10);
    member.crc = little_endian<std::uint32_t>(in, 16);
    member.compressed_size = little_endian<std::uint32_t>(in, 20);
    member.size = little_endian<std::uint32_t>(in, 24);
    member.header_offset = little_endian<std::uint32_t>(in, 42);
    member.extra_length = static_cast<std::uint16_t>(extra_length);
    const std::uint16_t disk = little_endian<std::uint16_t>(in, 34);
    if (disk != 0 && disk != UINT16_MAX) throw several_disks();
    const bool complete =
        read_zip64(in.subspan(kEntrySize + name_length, extra_length),
                   {&member.size, &member.compressed_size, &member.header_offset});
    // In this form nothing of it can wrap around later.
    if (complete && member.header_offset <= directory_offset - prefix &&
        member.compressed_size <= directory_offset - prefix - member.header_offset)
      member.header_offset += prefix;
    else
      member.header_offset = ZipMember::kOutside;
    if (is_usable(name)) {
      member.name_begin = static_cast<std::uint32_t>(names_.size());
      member.name_length = static_cast<std::uint16_t>(name_length);
      names_ += name;
      members_.push_back(member);
    }
    in = in.subspan(length);
  }
}

void ZipDirectory::set_ends(std::uint64_t directory_offset) {
  std::vector<std::uint64_t> starts;
  for (const ZipMember& member : members_) starts.push_back(member.header_offset);
  std::sort(starts.begin(), starts.end());
  for (ZipMember& member : members_) {
    const auto next = std::upper_bound(starts.begin(), starts.end(), member.header_offset);
    member.end = next == starts.end() ? directory_offset : std::min(*next, directory_offset);
  }
}

void ZipDirectory::sort_by_name() {
  std::stable_sort(members_.begin(), members_.end(),
                   [this](const ZipMember& a, const ZipMember& b) { return name(a) < name(b); });
  // The last of equal names stays.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (i + 1 < members_.size() && name(members_[i]) == name(members_[i + 1])) continue;
    members_[kept++] = members_[i];
  }
  members_.resize(kept);
}

std::vector<ZipMember>::const_iterator ZipDirectory::first_from(std::string_view wanted) const {
  return std::lower_bound(
      members_.begin(), members_.end(), wanted,
      [this](const ZipMember& member, std::string_view text) { return name(member) < text; });
}

const ZipMember* ZipDirectory::find(std::string_view wanted) const {
  const auto it = first_from(wanted);
  return it != members_.end() && name(*it) == wanted ? &*it : nullptr;
}

std::vector<Store::Entry> ZipDirectory::list(const std::string& prefix) const {
  std::vector<Store::Entry> entries;
  const std::string start = prefix.empty() ? "" : prefix + "/";
  auto it = first_from(start);
  while (it != members_.end() && name(*it).starts_with(start)) {
    const std::string_view rest = name(*it).substr(start.size());
    const std::size_t slash = rest.find('/');
    if (slash == std::string_view::npos) {
      if (!rest.empty()) entries.push_back({std::string(rest), false});
      ++it;
    } else {
      entries.push_back({std::string(rest.substr(0, slash)), true});
      // Over everything below: '0' is the character after '/'.
      it = first_from(start + entries.back().name + '0');
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Store::Entry& a, const Store::Entry& b) {
    return std::tie(a.name, a.is_prefix) < std::tie(b.name, b.is_prefix);
  });
  return entries;
}

}  // namespace batchfs
