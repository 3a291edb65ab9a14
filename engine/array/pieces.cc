#include "engine/array/pieces.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

namespace batchfs {

namespace {

using Span = Codec::Span;

/// A request costs more than these bytes.
constexpr std::uint64_t kNear = 16 << 10;
/// Enough for the block offsets of most Blosc frames.

std::optional<std::vector<Span>> spans_of(const CodecChain& chain, const EncodedChunk& chunk,
                                          std::uint64_t first, std::uint64_t count,
                                          std::uint64_t* more) {
  *more = 0;
  if (chunk.pieces.empty() || chunk.pieces.front().offset != 0) return std::nullopt;
  return chain.stored_spans(chunk.pieces.front().bytes->span(), chunk.stored_size, first, count,
                            more);
}

/// Alive as long as one of its requests is in flight.
class RunFetch : public std::enable_shared_from_this<RunFetch> {
 public:
  RunFetch(WantedRun wanted, OtherEnds other, FetchDone done)
      : wanted_(std::move(wanted)), other_(std::move(other)), done_(std::move(done)) {}

  void start(const EncodedChunk* have) {
    if (have == nullptr || have->pieces.empty()) return fetch_head(kFirstHead);
    result_.missing = false;
    result_.pieces = have->pieces;
    result_.stored_size = have->stored_size;
    fetch_lacking();
  }

 private:
  void fetch_head(std::uint64_t length) {
    const ChunkPlace& place = wanted_.place;
    length = std::min(length, place.length.value_or(length));
    const auto take = [self = shared_from_this(), length](auto outcome) {
      self->take_head(std::move(outcome), length);
    };
    wanted_.store.read_version_async(place.key, {place.offset, length}, {}, take);
  }

  void take_head(std::variant<Store::VersionedRead, std::exception_ptr> outcome,
                 std::uint64_t length) {
    if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done_(*error);
    auto& read = std::get<Store::VersionedRead>(outcome);
    const bool in_shard = wanted_.place.length.has_value();
    if (!read.bytes && in_shard)
      return fail(Error(ErrorCode::stale, "the shard has gone while it was read"));
    if (!read.bytes) return other_.missing(done_);
    const std::optional<std::uint64_t> stored = in_shard ? wanted_.place.length : read.object_size;
    if (!stored) return other_.whole(done_);
    try {
      wanted_.chain.check_stored_size(*stored);
    } catch (...) {
      return done_(std::current_exception());
    }
    if (read.bytes->size() != std::min(*stored, length))
      return other_.cut_short(ends_early(read.bytes->size(), std::min(*stored, length)), done_);
    result_.missing = false;
    if (*stored <= length) {
      result_.bytes = std::move(*read.bytes);
      return done_(std::move(result_));
    }
    result_.stored_size = *stored;
    result_.pieces = {{0, std::make_shared<const Buffer>(std::move(*read.bytes))}};
    fetch_lacking();
  }

  void fetch_lacking() {
    std::uint64_t more = 0;
    const auto spans = lacking_spans(wanted_.chain, result_, wanted_.first, wanted_.count, &more);
    if (!spans && more > result_.pieces.front().bytes->size() && more < result_.stored_size)
      return fetch_head(more);
    if (!spans) return other_.whole(done_);
    if (spans->empty()) return done_(std::move(result_));
    waiting_ = spans->size();
    for (const Span& span : *spans) {
      const ByteRange range{wanted_.place.offset + span.offset, span.length};
      wanted_.store.read_async(wanted_.place.key, range,
                               [self = shared_from_this(), span](ReadOutcome outcome) {
                                 self->take_piece(std::move(outcome), span);
                               });
    }
  }

  void take_piece(ReadOutcome outcome, const Span& span) {
    {
      const std::lock_guard lock(mutex_);
      if (auto* error = std::get_if<std::exception_ptr>(&outcome)) {
        error_ = *error;
      } else if (auto& bytes = std::get<std::optional<Buffer>>(outcome); !bytes) {
        error_ = std::make_exception_ptr(
            Error(ErrorCode::stale, "the chunk has gone while it was read"));
      } else if (bytes->size() != span.length) {
        short_ = ends_early(span.offset + bytes->size(), span.offset + span.length);
      } else {
        result_.pieces.push_back({span.offset, std::make_shared<const Buffer>(std::move(*bytes))});
      }
      if (--waiting_ > 0) return;
    }
    if (error_) return done_(error_);
    if (short_) return other_.cut_short(*short_, done_);
    std::stable_sort(result_.pieces.begin(), result_.pieces.end(),
                     [](const auto& a, const auto& b) { return a.offset < b.offset; });
    done_(std::move(result_));
  }

  void fail(const Error& error) { done_(std::make_exception_ptr(error)); }

  const WantedRun wanted_;
  const OtherEnds other_;
  const FetchDone done_;

  std::mutex mutex_;  // guards the fields below while pieces are in flight
  EncodedChunk result_;
  std::size_t waiting_ = 0;
  std::exception_ptr error_;
  std::optional<Error> short_;
};

}  // namespace

Error ends_early(std::uint64_t got, std::uint64_t expected) {
  return Error(
      ErrorCode::corrupt,
      fmt::format("the stored chunk ends early: {} bytes, {} were expected", got, expected));
}

void fetch_run(WantedRun wanted, const EncodedChunk* have, OtherEnds other, FetchDone done) {
  std::make_shared<RunFetch>(std::move(wanted), std::move(other), std::move(done))->start(have);
}

std::optional<std::vector<Span>> lacking_spans(const CodecChain& chain, const EncodedChunk& chunk,
                                               std::uint64_t first, std::uint64_t count,
                                               std::uint64_t* more) {
  auto spans = spans_of(chain, chunk, first, count, more);
  if (!spans) return std::nullopt;
  std::sort(spans->begin(), spans->end(),
            [](const Span& a, const Span& b) { return a.offset < b.offset; });
  std::vector<Span> lacking;
  const auto add = [&lacking](std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    if (!lacking.empty() && begin <= lacking.back().offset + lacking.back().length + kNear)
      lacking.back().length =
          std::max(end, lacking.back().offset + lacking.back().length) - lacking.back().offset;
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

std::span<const std::byte> filled_in(const CodecChain& chain, const EncodedChunk& chunk,
                                     std::uint64_t first, std::uint64_t count, Buffer& scratch) {
  std::uint64_t more = 0;
  const auto spans = spans_of(chain, chunk, first, count, &more);
  const auto lacking = lacking_spans(chain, chunk, first, count, &more);
  if (!spans || !lacking || !lacking->empty())
    throw Error(ErrorCode::internal, "pieces of the stored chunk are missing");
  if (scratch.size() < chunk.stored_size) scratch = Buffer(chunk.stored_size);
  const std::span<std::byte> whole = scratch.span().first(chunk.stored_size);
  const auto copy = [whole](const EncodedChunk::Piece& piece, std::uint64_t begin,
                            std::uint64_t end) {
    begin = std::max(begin, piece.offset);
    end = std::min(end, piece.offset + piece.bytes->size());
    if (begin < end)
      std::memcpy(whole.data() + begin, piece.bytes->data() + (begin - piece.offset), end - begin);
  };
  const EncodedChunk::Piece& head = chunk.pieces.front();
  copy(head, 0, head.bytes->size());
  for (const Span& span : *spans)
    for (const EncodedChunk::Piece& piece : chunk.pieces)
      copy(piece, span.offset, span.offset + span.length);
  return whole;
}

}  // namespace batchfs
