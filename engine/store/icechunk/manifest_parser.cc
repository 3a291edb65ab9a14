// From the FlatBuffer of a manifest to columns.

#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>

#include <fmt/format.h>
#include <zstd.h>

#include "engine/store/icechunk/manifest.h"
#include "engine/store/virtual/claims.h"

namespace batchfs::icechunk {

namespace {

// Fields of the schema's tables by number: manifest.fbs of Icechunk's.
enum ManifestField { kManifestId, kArrays, kDictionary, kAlgorithm };
enum ArrayRefsField { kArrayId, kRefs };
enum ReferenceField {
  kIndex,
  kInline,
  kOffset,
  kLength,
  kChunkId,
  kLocation,
  kEtag,
  kModified,
  kCompressedLocation
};

constexpr std::uint64_t kMaxOffset = std::uint64_t{1} << 62, kMaxLength = std::uint64_t{1} << 40;
constexpr std::size_t kMaxLocation = 4096, kMaxDecompressed = 1024, kMaxEtag = 1024;
constexpr std::size_t kMaxDictionary = 1 << 20;

Error corrupt(const std::string& why) { return Error(ErrorCode::corrupt, why); }

/// A file as the manifest names it.
struct FileKey {
  Bytes location;
  bool compressed;
  std::string_view etag;
  std::uint32_t modified;

  friend bool operator==(const FileKey& a, const FileKey& b) {
    return a.compressed == b.compressed && a.modified == b.modified && a.etag == b.etag &&
           std::equal(a.location.begin(), a.location.end(), b.location.begin(), b.location.end());
  }
};

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct FileKeyHash {
  std::size_t operator()(const FileKey& key) const {
    const std::hash<std::string_view> hash;
    return hash(text_of(key.location)) * 31 + hash(key.etag) * 7 + key.modified;
  }
};

/// Locations, each compressed alone with the manifest's dictionary.
class Locations {
 public:
  explicit Locations(Bytes dictionary) : context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
    if (dictionary.size() > kMaxDictionary)
      throw Error(ErrorCode::corrupt, "the manifest's dictionary of locations is too large");
    if (context_ == nullptr) throw Error(ErrorCode::no_memory, "no memory for the zstd decoder");
    has_dictionary_ = !dictionary.empty();
    if (ZSTD_isError(
            ZSTD_DCtx_loadDictionary(context_.get(), dictionary.data(), dictionary.size())) != 0)
      throw Error(ErrorCode::corrupt, "the manifest's dictionary of locations is damaged");
  }

  std::string decompress(Bytes compressed) {
    if (!has_dictionary_) throw corrupt("the manifest has compressed locations and no dictionary");
    std::string text(kMaxDecompressed, '\0');
    const std::size_t size = ZSTD_decompressDCtx(context_.get(), text.data(), text.size(),
                                                 compressed.data(), compressed.size());
    if (ZSTD_isError(size) != 0)
      throw corrupt(fmt::format("a location of the manifest cannot be decompressed: {}",
                                ZSTD_getErrorName(size)));
    text.resize(size);
    return text;
  }

 private:
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context_;
  bool has_dictionary_ = false;
};

}  // namespace

class Manifest::Parser {
 public:
  Parser(Manifest& to, const FlatTable& root, std::uint64_t memory)
      : to_(to), root_(root), claims_(memory) {}

  void parse(const ObjectId& id) {
    const Bytes own = root_.structure(kManifestId, sizeof(ObjectId));
    if (own.size() != id.size() || !std::equal(own.begin(), own.end(), id.begin()))
      throw corrupt("the file holds another manifest");
    const FlatTables arrays = root_.tables(kArrays);
    claims_.take(std::uint64_t{arrays.size()} * sizeof(Array));
    for (std::uint32_t i = 0; i < arrays.size(); ++i) add_array(arrays[i]);
    std::sort(to_.arrays_.begin(), to_.arrays_.end(),
              [](const Array& a, const Array& b) { return a.id < b.id; });
    if (std::adjacent_find(to_.arrays_.begin(), to_.arrays_.end(),
                           [](const Array& a, const Array& b) { return a.id == b.id; }) !=
        to_.arrays_.end())
      throw corrupt("the manifest describes one array twice");
    to_.memory_ = claims_.used();
  }

 private:
  void add_array(const FlatTable& table) {
    Array array;
    const Bytes id = table.structure(kArrayId, sizeof(NodeId));
    if (id.size() != array.id.size()) throw_flat_damage("an array without its id");
    std::copy(id.begin(), id.end(), array.id.begin());
    const FlatTables refs = table.tables(kRefs);
    const std::uint64_t count = refs.size();
    if (count > 0) {
      const std::uint64_t cells = find_box(refs, array);
      const bool dense = cells == count, near = cells <= UINT32_MAX;
      const std::uint64_t position_bytes = dense ? 0 : near ? 4 : 8;
      claims_.take(count * (sizeof(Record) + position_bytes));
      array.records.reserve(count);
      if (!dense && near) array.near.reserve(count);
      if (!dense && !near) array.far.reserve(count);
      for (std::uint32_t i = 0; i < count; ++i) {
        const FlatTable ref = refs[i];
        if (!dense) {
          const std::uint64_t position = position_of(ref, array);
          if (near)
            array.near.push_back(static_cast<std::uint32_t>(position));
          else
            array.far.push_back(position);
        }
        array.records.push_back(record_of(ref));
      }
    }
    to_.references_ += count;
    to_.arrays_.push_back(std::move(array));
  }

  static std::uint32_t index_at(const FlatVector& index, std::size_t d) {
    std::uint32_t value;
    std::memcpy(&value, index.bytes.data() + d * sizeof value, sizeof value);
    return value;
  }

  /// Finds the box of all references, whose indices must increase. Returns its size.
  static std::uint64_t find_box(const FlatTables& refs, Array& array) {
    std::vector<std::uint32_t> last, most;
    for (std::uint32_t i = 0; i < refs.size(); ++i) {
      const FlatVector index = refs[i].vector(kIndex, sizeof(std::uint32_t));
      if (i == 0) {
        if (index.count > kMaxRank) throw corrupt("an array of too many dimensions");
        last.resize(index.count);
        for (std::size_t d = 0; d < index.count; ++d) last[d] = index_at(index, d);
        array.from = most = last;
        continue;
      }
      if (index.count != last.size())
        throw corrupt("the references of one array have different numbers of dimensions");
      bool greater = false;
      for (std::size_t d = 0; d < index.count; ++d) {
        const std::uint32_t at = index_at(index, d);
        if (!greater && at < last[d]) throw corrupt("the references of an array are not sorted");
        greater = greater || at > last[d];
        last[d] = at;
        array.from[d] = std::min(array.from[d], at);
        most[d] = std::max(most[d], at);
      }
      if (!greater) throw corrupt("the manifest has two references for one chunk");
    }
    std::uint64_t cells = 1;
    for (std::size_t d = 0; d < last.size(); ++d) {
      const std::uint64_t size = std::uint64_t{most[d]} - array.from[d] + 1;
      if (size > UINT32_MAX || cells > UINT64_MAX / size)
        throw Error(ErrorCode::not_supported, "the manifest describes a grid of 2^64 chunks");
      cells *= size;
      array.size.push_back(static_cast<std::uint32_t>(size));
    }
    return cells;
  }

  static std::uint64_t position_of(const FlatTable& ref, const Array& array) {
    const FlatVector index = ref.vector(kIndex, sizeof(std::uint32_t));
    std::uint64_t position = 0;
    for (std::size_t d = 0; d < array.from.size(); ++d)
      position = position * array.size[d] + (index_at(index, d) - array.from[d]);
    return position;
  }

  Record record_of(const FlatTable& ref) {
    const bool within = ref.has(kInline), native = ref.has(kChunkId), plain = ref.has(kLocation),
               compressed = ref.has(kCompressedLocation);
    if (within + native + plain + compressed != 1)
      throw corrupt("a reference names no place of its chunk, or several");
    if (within) return within_record(ref.bytes(kInline));
    const auto offset = ref.number<std::uint64_t>(kOffset, 0);
    const auto length = ref.number<std::uint64_t>(kLength, 0);
    if (offset > kMaxOffset || length > kMaxLength)
      throw corrupt(fmt::format("a reference to {} bytes at {}", length, offset));
    if (native) return native_record(ref.structure(kChunkId, sizeof(ObjectId)), offset, length);
    return file_record(file_of(ref, compressed), offset, length);
  }

  static std::uint32_t head(Tag tag, std::uint64_t length) {
    return static_cast<std::uint32_t>(tag) << kLengthBits | static_cast<std::uint32_t>(length);
  }

  Record within_record(Bytes bytes) {
    if (bytes.size() >> kLengthBits != 0) throw corrupt("an inline chunk of more than 1 GB");
    Record record{head(Tag::within, bytes.size()), {}};
    put<std::uint64_t>(record, 0, to_.within_.size());
    grow(to_.within_, bytes.size());
    to_.within_.insert(to_.within_.end(), bytes.begin(), bytes.end());
    return record;
  }

  Record native_record(Bytes id, std::uint64_t offset, std::uint64_t length) {
    Wide wide{Tag::native, 0, {}, offset, length};
    std::copy(id.begin(), id.end(), wide.object.begin());
    if (length >> kLengthBits != 0 || offset > UINT32_MAX) return wide_record(wide);
    Record record{head(Tag::native, length), {}};
    std::copy(id.begin(), id.end(), record.body.begin());
    put(record, id.size(), static_cast<std::uint32_t>(offset));
    return record;
  }

  Record file_record(std::uint32_t file, std::uint64_t offset, std::uint64_t length) {
    if (length >> kLengthBits != 0) return wide_record({Tag::in_file, file, {}, offset, length});
    Record record{head(Tag::in_file, length), {}};
    put(record, 0, file);
    put(record, 8, offset);
    return record;
  }

  Record wide_record(const Wide& wide) {
    Record record{head(Tag::wide, 0), {}};
    put(record, 0, static_cast<std::uint32_t>(to_.wide_.size()));
    grow(to_.wide_, 1);
    to_.wide_.push_back(wide);
    return record;
  }

  template <class Number>
  static void put(Record& record, std::size_t at, Number value) {
    std::memcpy(record.body.data() + at, &value, sizeof value);
  }

  /// Claims memory for a growing vector before it grows.
  template <class Vector>
  void grow(Vector& vector, std::size_t more) {
    if (vector.capacity() - vector.size() >= more) return;
    const std::size_t capacity = std::max(vector.capacity() * 3 / 2, vector.size() + more);
    claims_.take((capacity - vector.capacity()) * sizeof(typename Vector::value_type));
    vector.reserve(capacity);
  }

  std::uint32_t file_of(const FlatTable& ref, bool compressed) {
    const FileKey key{ref.bytes(compressed ? kCompressedLocation : kLocation), compressed,
                      ref.text(kEtag), ref.number<std::uint32_t>(kModified, 0)};
    // Neighbours mostly lie in one file.
    if (last_file_ != UINT32_MAX && key == last_key_) return last_file_;
    const auto [it, is_new] = numbers_.try_emplace(key, to_.files_.size());
    last_key_ = key;
    last_file_ = it->second;
    if (!is_new) return last_file_;
    claims_.take(kEntryMemory);
    std::string decompressed;
    std::string_view location = text_of(key.location);
    if (compressed) location = decompressed = locations().decompress(key.location);
    if (location.size() > kMaxLocation || key.etag.size() > kMaxEtag)
      throw corrupt("a location in the manifest is too long");
    if (to_.texts_.size() + location.size() + key.etag.size() > UINT32_MAX)
      throw Error(ErrorCode::not_supported, "the manifest has more than 4 GB of locations");
    Stored stored{};
    stored.modified = key.modified;
    stored.location = static_cast<std::uint32_t>(to_.texts_.size());
    stored.location_size = static_cast<std::uint32_t>(location.size());
    stored.etag = stored.location + stored.location_size;
    stored.etag_size = static_cast<std::uint32_t>(key.etag.size());
    grow(to_.texts_, location.size() + key.etag.size());
    to_.texts_.append(location).append(key.etag);
    grow(to_.files_, 1);
    to_.files_.push_back(stored);
    return last_file_;
  }

  Locations& locations() {
    if (locations_ == nullptr) {
      if (root_.number<std::uint8_t>(kAlgorithm, 1) != 1)
        throw Error(ErrorCode::not_supported,
                    "the manifest's locations are compressed in an unknown way");
      locations_ = std::make_unique<Locations>(root_.bytes(kDictionary));
    }
    return *locations_;
  }

  /// Memory of an entry of numbers_ during parsing.
  static constexpr std::uint64_t kEntryMemory = 88;

  Manifest& to_;
  const FlatTable root_;
  Claims claims_;
  std::unordered_map<FileKey, std::uint32_t, FileKeyHash> numbers_;
  FileKey last_key_{};
  std::uint32_t last_file_ = UINT32_MAX;
  std::unique_ptr<Locations> locations_;
};

std::shared_ptr<const Manifest> Manifest::parse(Bytes bytes, const ObjectId& id,
                                                std::uint64_t payload, std::uint64_t memory) {
  File file = open_file(bytes, FileType::manifest, payload);
  const auto manifest = std::make_shared<Manifest>();
  Parser(*manifest, file.root(), memory).parse(id);
  file.payload.discard();
  return manifest;
}

}  // namespace batchfs::icechunk
