#pragma once
// The codecs of an array, applied in turn.

#include <memory>
#include <vector>

#include "engine/base/error.h"
#include "engine/codec/codec.h"

namespace batchfs {

/// Immutable and thread-safe. Decoding uses scratch memory for the data between two codecs: callers
/// reserve scratch_bytes() for it.
class CodecChain {
 public:
  /// `specs` in encode order. Throws not_supported naming the codec.
  CodecChain(const std::vector<CodecSpec>& specs, ChunkLayout layout);

  /// The codecs named in the metadata, in encode order.
  const std::vector<CodecSpec>& specs() const { return specs_; }

  /// Bytes of a decoded chunk: C order, native byte order, the full chunk shape.
  std::uint64_t decoded_size() const { return decoded_size_; }
  /// Exact size of the stored bytes when it does not depend on the data.
  std::optional<std::uint64_t> encoded_size() const;
  /// The most bytes that a stored chunk may have; more are refused.
  std::uint64_t encoded_bound() const { return encoded_bound_; }

  /// Bytes of memory that decode() takes beside its input and output.
  std::uint64_t scratch_bytes() const { return scratch_bytes_; }

  /// Throws corrupt for a size that no stored chunk has.
  void check_stored_size(std::uint64_t size) const;
  /// The error for a stored chunk longer than encoded_bound(); `size` is its known size.
  Error too_long(std::uint64_t size) const;

  /// Are stored bytes the decoded bytes (or only byte-swapped)? Then any part can be fetched alone.
  bool is_plain() const { return plain_; }
  /// Plain, and not even swapped.
  bool is_identity() const { return identity_; }

  /// Decodes a whole chunk; out.size() == decoded_size(). Throws corrupt when the bytes are short,
  /// long or wrong.
  void decode(std::span<const std::byte> encoded, std::span<std::byte> out) const;

  /// Can a run of elements be decoded for less than the whole chunk?
  bool has_ranges() const { return ranged_; }
  /// Decodes the C-order elements [first, first + count) of the chunk into `out`.
  void decode_elements(std::span<const std::byte> encoded, std::uint64_t first, std::uint64_t count,
                       std::span<std::byte> out) const;
  /// Like Codec::stored_spans(), for decode_elements().
  std::optional<std::vector<Codec::Span>> stored_spans(std::span<const std::byte> head,
                                                       std::uint64_t stored_size,
                                                       std::uint64_t first, std::uint64_t count,
                                                       std::uint64_t* more) const;
  /// Plain chains: turns stored elements into elements, in place.
  void decode_plain(std::span<std::byte> elements) const;
  /// Bytes of the smallest run that is decoded at a time.
  std::uint64_t range_granularity(std::span<const std::byte> encoded) const;

 private:
  /// The first codec, in decode order, from which on all work in place, in the memory for the
  /// result.
  std::size_t first_direct() const;
  std::uint64_t find_scratch() const;
  std::vector<CodecSpec> specs_;
  std::vector<std::unique_ptr<Codec>> codecs_;  // decode order: stored side first
  std::vector<std::uint64_t> sizes_;            // largest decoded size after each codec
  ChunkLayout layout_;
  std::uint64_t decoded_size_ = 0;
  std::uint64_t encoded_bound_ = 0;
  bool plain_ = false;
  bool identity_ = false;
  bool ranged_ = false;
  std::uint64_t scratch_bytes_ = 0;
};

}  // namespace batchfs
