#include "engine/pipeline/chunks/chunk_fetcher.h"

#include <algorithm>
#include <utility>

namespace batchfs {

void ChunkFetcher::fetch(Fetch fetch, std::function<void(std::shared_ptr<Fetch>)> arrived) {
  const std::shared_ptr<const Array> array = fetch.array;
  const Dims chunk = array->grid().chunk(fetch.chunk);
  const Box box = fetch.box;
  const bool in_pieces = fetch.in_pieces;
  std::shared_ptr<const EncodedChunk> known;
  if (in_pieces && fetch.stored != nullptr)
    known = std::shared_ptr<const EncodedChunk>(fetch.stored, &fetch.stored->encoded);
  // Handed over as a whole: copies of the completion that live on in the store's thread must hold
  // nothing, or the last holder of the store could be its own thread.
  struct Pending {
    Fetch fetch;
    std::function<void(std::shared_ptr<Fetch>)> arrived;
  };
  const auto pending = std::make_shared<Pending>(Pending{std::move(fetch), std::move(arrived)});
  auto complete = [this, pending](std::variant<EncodedChunk, std::exception_ptr> outcome) {
    auto done = std::make_shared<Fetch>(std::move(pending->fetch));
    const auto call = std::exchange(pending->arrived, nullptr);
    done->outcome = std::move(outcome);
    const auto* came = std::get_if<EncodedChunk>(&done->outcome);
    trace_.add({.kind = Trace::Kind::fetch,
                .end = came != nullptr ? Trace::End::done : Trace::End::failed,
                .begin = done->began,
                .bytes = came != nullptr ? came->held() : 0,
                .of = batch_of(done->consumers)},
               done->array->metadata().path, done->array->grid().chunk(done->chunk));
    call(std::move(done));
  };
  if (in_pieces)
    array->fetch_pieces(chunk, box, std::move(known), std::move(complete));
  else
    array->fetch(chunk, box, std::move(complete));
}

std::shared_ptr<const KeptChunk> ChunkFetcher::accept(Fetch& arrived) {
  auto& encoded = std::get<EncodedChunk>(arrived.outcome);
  const std::uint64_t held = encoded.held();
  const bool takes_over = arrived.stored != nullptr && !encoded.pieces.empty();
  counters_.bytes_fetched += held - std::min(held, takes_over ? arrived.stored->encoded.held() : 0);
  ++counters_.chunks_fetched;
  arrived.stored.reset();
  decoder_.adjust(arrived.memory, held, arrived.consumers);
  return std::make_shared<const KeptChunk>(
      KeptChunk{std::move(encoded), std::move(arrived.memory)});
}

}  // namespace batchfs
