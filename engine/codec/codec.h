#pragma once
// Codecs: stored bytes -> array bytes. One codec, one file pair; codec_registry.cc is the list.
//
// How to add one: derive from Codec, write a factory with the signature of CodecFactory, add it to
// the table in registry.cc, and a test with vectors from an independent implementation.
//
// Every decode is bounded by the size in the metadata and validates all of its input.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/dims.h"
#include "engine/zarr/array_metadata.h"
#include "engine/zarr/data_type.h"
#include "engine/zarr/small_number.h"

namespace batchfs {

/// The input of a codec when it encodes: the array part of a chunk on its decoded side.
struct ChunkLayout {
  Dims shape;     // in the order the codec sees it (after transposes)
  DataType type;  // in memory; once serialized, as stored
  std::vector<std::byte> fill_value;
  bool serialized = false;  // a codec has made bytes of the elements
  int shard_levels = 0;     // of sharding that this lies in
  /// The form that the serializer gives the elements, where it is not that of `type`.
  const SmallNumber* stored = nullptr;
};

/// Immutable and thread-safe.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual std::string_view name() const = 0;

  /// Bytes of the encoded form of `decoded` bytes; nullopt when that depends on the data.
  virtual std::optional<std::uint64_t> encoded_size(std::uint64_t decoded) const = 0;
  /// Bytes that the encoded form takes at most: a longer one is corrupt. An eighth and 4 KB more
  /// than `decoded` where that depends on the data.
  virtual std::uint64_t encoded_bound(std::uint64_t decoded) const;

  /// Decodes `in` into `out` and returns the bytes written. `out.size()` is the most that is
  /// allowed. `in` and `out` do not overlap unless in_place(). Throws Error{corrupt}.
  virtual std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const = 0;

  /// May decode() be called with in.data() == out.data()?
  virtual bool in_place() const { return false; }

  /// Are the encoded bytes the decoded bytes?
  virtual bool is_identity() const { return false; }

  /// Can decode_range() produce a part of the output at a part of the cost?
  virtual bool has_ranges() const { return false; }
  /// Writes decoded bytes [offset, offset + out.size()). `decoded_size` is the size of the whole.
  virtual void decode_range(std::span<const std::byte> in, std::uint64_t decoded_size,
                            std::uint64_t offset, std::span<std::byte> out) const;
  /// The bytes that decode_range() decodes at least (a Blosc block); 1 when it just copies.
  virtual std::uint64_t range_granularity(std::span<const std::byte> in) const;

  /// A run of stored bytes.
  struct Span {
    std::uint64_t offset = 0, length = 0;
  };
  /// Returns the spans that decode_range() of [offset, offset + length) reads in a stored form of
  /// `stored_size` bytes, computed from its first bytes, `head`: the stored form may then be passed
  /// with only `head` and these spans filled in. nullopt: more head is needed, `*more` bytes of it;
  /// 0 when the stored form cannot be read in part.
  virtual std::optional<std::vector<Span>> stored_spans(std::span<const std::byte> head,
                                                        std::uint64_t stored_size,
                                                        std::uint64_t offset, std::uint64_t length,
                                                        std::uint64_t* more) const;

  /// Bytes of memory beside input and output that decoding takes at most, where that is much.
  virtual std::uint64_t scratch_bytes(std::uint64_t /*decoded*/) const { return 0; }
};

/// Builds a codec for `layout` and changes `layout` to the input of the next codec (towards the
/// stored bytes). Throws not_supported by name, invalid_argument for a bad configuration.
using CodecFactory = std::unique_ptr<Codec> (*)(const JsonRef& configuration, ChunkLayout& layout);

/// nullptr when there is no codec of that name.
CodecFactory find_codec(std::string_view name);

/// not_supported, by name, for a codec that find_codec() does not have: with the reason and what to
/// do, where that is known.
Error unknown_codec(std::string_view name);

/// A codec's input and output when it encodes (v3 core, "Codecs").
enum class CodecStage {
  array,       // arrays to arrays
  filter,      // the same; in v2 the filters come after the making of bytes
  serializer,  // arrays to bytes: one in every chain
  bytes,       // bytes to bytes
  values,      // values to bytes: in v3 as a serializer, in v2 after the making of bytes
};
CodecStage codec_stage(std::string_view name);

/// Names of all codecs, for `doctor` and messages.
std::vector<std::string> codec_names();

}  // namespace batchfs
