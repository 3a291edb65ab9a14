#include "engine/codec/pieces.h"

#include <algorithm>
#include <cstring>

namespace batchfs {

namespace {

using Span = Codec::Span;

/// A request costs more than these bytes.
constexpr std::uint64_t kNear = 16 << 10;

std::optional<std::vector<Span>> spans_of(const CodecChain& chain, const EncodedChunk& chunk, std::uint64_t first,
                                          std::uint64_t count, std::uint64_t* more) {
  *more = 0;
  if (chunk.pieces.empty() || chunk.pieces.front().offset != 0) return std::nullopt;
  return chain.stored_spans(chunk.pieces.front().bytes->span(), chunk.stored_size, first, count, more);
}

}  // namespace

std::optional<std::vector<Span>> lacking_spans(const CodecChain& chain, const EncodedChunk& chunk, std::uint64_t first,
                                               std::uint64_t count, std::uint64_t* more) {
  auto spans = spans_of(chain, chunk, first, count, more);
  if (!spans) return std::nullopt;
  std::sort(spans->begin(), spans->end(), [](const Span& a, const Span& b) { return a.offset < b.offset; });
  std::vector<Span> lacking;
  const auto add = [&lacking](std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    if (!lacking.empty() && begin <= lacking.back().offset + lacking.back().length + kNear)
      lacking.back().length = std::max(end, lacking.back().offset + lacking.back().length) - lacking.back().offset;
    else
      lacking.push_back({begin, end - begin});
  };
  for (const Span& span : *spans) {
    std::uint64_t at = span.offset;
    const std::uint64_t end = span.offset + span.length;
    for (const EncodedChunk::Piece& piece : chunk.pieces) {
      if (at >= end || piece.offset >= end) break;
      const std::uint64_t piece_end = piece.offset + piece.bytes->size();
      if (piece_end <= at) continue;
      if (piece.offset > at) add(at, piece.offset);
      at = piece_end;
    }
    add(at, end);
  }
  return lacking;
}

std::span<const std::byte> filled_in(const CodecChain& chain, const EncodedChunk& chunk, std::uint64_t first,
                                     std::uint64_t count, Buffer& scratch) {
  std::uint64_t more = 0;
  const auto spans = spans_of(chain, chunk, first, count, &more);
  const auto lacking = lacking_spans(chain, chunk, first, count, &more);
  if (!spans || !lacking || !lacking->empty()) throw Error(ErrorCode::internal, "pieces of the stored chunk are missing");
  if (scratch.size() < chunk.stored_size) scratch = Buffer(chunk.stored_size);
  const std::span<std::byte> whole = scratch.span().first(chunk.stored_size);
  const auto copy = [whole](const EncodedChunk::Piece& piece, std::uint64_t begin, std::uint64_t end) {
    begin = std::max(begin, piece.offset);
    end = std::min(end, piece.offset + piece.bytes->size());
    if (begin < end) std::memcpy(whole.data() + begin, piece.bytes->data() + (begin - piece.offset), end - begin);
  };
  const EncodedChunk::Piece& head = chunk.pieces.front();
  copy(head, 0, head.bytes->size());
  for (const Span& span : *spans)
    for (const EncodedChunk::Piece& piece : chunk.pieces) copy(piece, span.offset, span.offset + span.length);
  return whole;
}

}  // namespace batchfs
