#include "engine/array/past_caches.h"

#include <future>
#include <utility>

#include "engine/array/pieces.h"
#include "engine/store/object_versions.h"

namespace batchfs {

namespace {

using Outcome = std::variant<EncodedChunk, std::exception_ptr>;

EncodedChunk stored_chunk(const CodecChain& chain, const ChunkPlace& place, ReadOutcome outcome) {
  if (const auto* error = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*error);
  auto& bytes = std::get<std::optional<Buffer>>(outcome);
  if (!bytes) throw Error(ErrorCode::stale, "the object has gone while it was read");
  if (place.length && bytes->size() != *place.length)
    throw ends_early(bytes->size(), *place.length);
  chain.check_stored_size(bytes->size());
  EncodedChunk encoded;
  encoded.missing = false;
  encoded.bytes = std::move(*bytes);
  return encoded;
}

void start_fetch(const ChunkSource& source, const Dims& chunk, FetchDone done) {
  source.locator.locate(chunk, [source, done = std::move(done)](ChunkLocator::Outcome outcome) {
    if (const auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(*error);
    const auto& [place, object_missing] = std::get<ChunkLocator::Location>(outcome);
    if (!place) return done(EncodedChunk{.object_missing = object_missing});
    ByteRange range{place->offset, place->length.value_or(UINT64_MAX)};
    if (!place->length) range.largest = source.chain.encoded_bound();
    read_past_caches(source.store, place->key, range,
                     [source, place = *place, done](ReadOutcome read) {
                       Outcome chunk_read;
                       try {
                         chunk_read = stored_chunk(source.chain, place, std::move(read));
                       } catch (...) {
                         chunk_read = std::current_exception();
                       }
                       done(std::move(chunk_read));
                     });
  });
}

}  // namespace

EncodedChunk fetch_past_caches(const ChunkSource& source, const Dims& chunk) {
  const auto promise = std::make_shared<std::promise<Outcome>>();
  start_fetch(source, chunk,
              [promise](Outcome outcome) { promise->set_value(std::move(outcome)); });
  Outcome outcome = promise->get_future().get();
  if (const auto* error = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*error);
  return std::move(std::get<EncodedChunk>(outcome));
}

FetchDone or_past_caches(const ChunkSource& source, const Dims& chunk, FetchDone done) {
  if (source.store.is_local()) return done;
  return [source, chunk, done = std::move(done)](Outcome outcome) {
    const auto* error = std::get_if<std::exception_ptr>(&outcome);
    if (error == nullptr || error_of(*error).code() != ErrorCode::corrupt)
      return done(std::move(outcome));
    start_fetch(source, chunk, done);
  };
}

}  // namespace batchfs
