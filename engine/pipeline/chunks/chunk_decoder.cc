#include "engine/pipeline/chunks/chunk_decoder.h"

#include <algorithm>

#include "engine/pipeline/chunks/boxes.h"
#include "engine/pipeline/chunks/chunk_costs.h"
#include "engine/pipeline/engine_errors.h"

namespace batchfs {

namespace {

/// A chunk of up to this many bytes is decoded even where the whole budget is smaller.
constexpr std::uint64_t kMaxBeyondBudget = 32 << 20;

/// Where in the array an element of a chunk is.
Dims array_index(const Array& array, std::int64_t chunk, const Dims& in_chunk) {
  Dims index = array.grid().chunk(chunk);
  for (std::size_t d = 0; d < index.size(); ++d)
    index[d] = index[d] * array.grid().chunk_shape()[d] + in_chunk[d];
  return index;
}

/// Can the use be decoded straight to where it goes? Its parts must all be the same box (one window
/// in two tensors), so that the others are copies of the first.
bool decodes_in_place(const Array& array, const Assembly& assembly, const Assembly::Use& use,
                      const Box& box) {
  const auto parts = assembly.parts_of(use);
  const Assembly::Part& first = parts.front();
  if (!(first.source == box) || !array.decodes_directly(box, first.strides)) return false;
  if (first.converter != nullptr && !first.converter->in_place()) return false;
  return std::all_of(parts.begin() + 1, parts.end(), [&](const Assembly::Part& part) {
    return Box(part.source) == Box(first.source) && part.converter == first.converter;
  });
}

/// Are the elements that a part takes first the stored values themselves?
bool keeps_stored_values(const Assembly::Part& first) {
  return first.converter == nullptr || first.converter->is_copy();
}

}  // namespace

Trace::Batch batch_of(std::span<const ChunkConsumer> consumers) {
  return consumers.empty() ? Trace::Batch{} : consumers.front().assembly->of;
}

void observe(const ChunkConsumer& consumer, bool object_missing) {
  const Array& array = *consumer.use->array;
  if (!array.is_sharded()) return;
  consumer.assembly->observe(array, array.object_number(consumer.use->chunk), object_missing);
}

void gather(const ChunkConsumer& consumer, const DecodedChunk& chunk) {
  observe(consumer, chunk.object_missing);
  const Array& array = *consumer.use->array;
  const std::size_t itemsize = array.type().itemsize;
  const Box box = intersection(chunk.box, consumer.missing);
  const bool is_all = box == consumer.missing;
  for (const Assembly::Part& part : consumer.assembly->parts_of(*consumer.use)) {
    if (const Box piece = intersection(part.source, box); !piece.empty()) {
      const std::byte* source = chunk.at(piece.start);
      std::byte* out = part.out;
      for (std::size_t d = 0; d < piece.start.size(); ++d)
        out += (piece.start[d] - part.source.start[d]) * part.strides[d];
      if (part.converter != nullptr && !part.converter->is_copy())
        part.converter->convert(piece.shape, source, chunk.strides, out, part.strides,
                                array_index(array, consumer.use->chunk, piece.start));
      else
        copy_strided(piece.shape, itemsize, source, chunk.strides, out, part.strides);
    }
    if (is_all) part.copy_to_repeats(itemsize);
  }
}

bool ChunkDecoder::release_some(std::uint64_t keep_until) {
  return (release_batch_ && release_batch_()) || cache_.evict_one(keep_until);
}

Budget::Reservation ChunkDecoder::find_memory(std::uint64_t bytes,
                                              std::span<const ChunkConsumer> consumers) {
  Budget::Reservation result;
  for (const ChunkConsumer& consumer : consumers) {
    if (result.bytes() == bytes) return result;
    result.absorb(consumer.assembly->take_ahead(bytes - result.bytes()));
  }
  const std::uint64_t rest = bytes - result.bytes();
  if (rest == 0) return result;
  do {
    if (auto more = budget_.try_reserve(rest)) {
      result.absorb(std::move(more));
      return result;
    }
  } while (release_some(0));
  return result;
}

void ChunkDecoder::check_size(std::uint64_t bytes) const {
  if (bytes > budget_.limit() && bytes > kMaxBeyondBudget)
    throw chunk_larger_than_budget(bytes, budget_.limit());
}

void ChunkDecoder::adjust(Budget::Reservation& memory, std::uint64_t bytes,
                          std::span<const ChunkConsumer> consumers) {
  if (memory.bytes() > bytes) memory.split(memory.bytes() - bytes);
  if (memory.bytes() < bytes) memory.absorb(find_memory(bytes - memory.bytes(), consumers));
  if (memory.bytes() < bytes) memory.absorb(budget_.reserve(bytes - memory.bytes()));
}

Budget::Reservation ChunkDecoder::reserve_to_keep(const Array& array, std::int64_t number,
                                                  std::uint64_t bytes,
                                                  std::span<const ChunkConsumer> consumers) {
  if (!ChunkCache::is_worth_keeping(array)) return {};
  const std::optional<std::uint64_t> next = cache_.next_use({&array, number});
  const bool keeps =
      next || std::any_of(consumers.begin(), consumers.end(), [](const ChunkConsumer& consumer) {
        return consumer.assembly->keeps_chunks;
      });
  // While uses are looked for, a batch that takes a part of a chunk leaves the rest for others.
  const bool may_be_used =
      cache_.is_looking() &&
      std::any_of(consumers.begin(), consumers.end(), [&](const ChunkConsumer& consumer) {
        return consumer.assembly->shares_memory && consumer.missing != whole_chunk(array, number);
      });
  if (!keeps && !may_be_used) return {};
  do {
    if (auto memory = budget_.try_reserve(bytes)) return memory;
  } while (release_some(next.value_or(ChunkCache::kSpared)));
  if (keeps) cache_.press();
  return {};
}

ChunkDecoder::Result ChunkDecoder::decode(const Array& array, std::int64_t number, const Box& box,
                                          std::span<const ChunkConsumer> consumers,
                                          const KeptChunk* stored,
                                          std::span<ChunkConsumer> others) {
  const Dims chunk = array.grid().chunk(number);
  bool object_missing = stored != nullptr && stored->encoded.object_missing;
  auto load = [&](std::byte* out, const Dims& strides) {
    Array::Loaded loaded{.object_missing = object_missing};
    Trace::Event event{
        .kind = Trace::Kind::decode, .begin = Trace::now(), .of = batch_of(consumers)};
    event.bytes = stored != nullptr ? array.decode(chunk, stored->encoded, box, out, strides)
                                    : array.load(chunk, box, out, strides, &loaded);
    trace_.add(event, array.metadata().path, chunk);
    counters_.bytes_decoded += event.bytes;
    counters_.bytes_fetched += loaded.fetched;
    object_missing = loaded.object_missing;
    if (stored == nullptr) ++counters_.chunks_fetched;
    ++counters_.chunks_decoded;
  };
  // A chunk of a local store is read when it is decoded: the memory it takes until then.
  Budget::Reservation passing;
  std::unique_lock<std::mutex> beyond;
  const auto reserve = [&](Budget::Reservation& memory, std::uint64_t bytes) {
    memory = find_memory(bytes, consumers);
    if (memory.bytes() == bytes) return;
    if (!beyond.owns_lock()) beyond = std::unique_lock(beyond_budget_);
    adjust(memory, bytes, consumers);
  };
  // And the memory between its codecs.
  const auto reserve_passing = [&](const Dims& out_strides) {
    const bool is_read = stored == nullptr && !array.chain().is_plain();
    const std::uint64_t scratch = array.scratch_bytes(box, out_strides);
    check_size(scratch);  // how much is read is only estimated
    const std::uint64_t bytes = (is_read ? stored_bytes(array, box, false) : 0) + scratch;
    if (bytes > 0) reserve(passing, bytes);
  };
  const std::uint64_t bytes = static_cast<std::uint64_t>(box.elements()) * array.type().itemsize;
  const std::uint64_t taken = cache_.memory_of(bytes);
  check_size(bytes);
  Result result;
  result.keep = others.empty();
  Budget::Reservation kept =
      result.keep ? reserve_to_keep(array, number, taken, consumers) : Budget::Reservation();
  const auto in_place =
      kept.bytes() == taken && bytes > 0
          ? consumers.end()
          : std::find_if(consumers.begin(), consumers.end(), [&](const ChunkConsumer& consumer) {
              return decodes_in_place(array, *consumer.assembly, *consumer.use, box) &&
                     (consumers.size() == 1 ||
                      (consumer.assembly->shares_memory &&
                       keeps_stored_values(consumer.assembly->parts_of(*consumer.use).front())));
            });
  if (in_place != consumers.end()) {
    const ChunkConsumer& consumer = *in_place;
    const auto parts = consumer.assembly->parts_of(*consumer.use);
    const Assembly::Part& first = parts.front();
    reserve_passing(first.strides);
    load(first.out, first.strides);
    observe(consumer, object_missing);
    const bool raw = keeps_stored_values(first);
    if (!raw)
      first.converter->convert(box.shape, first.out, first.strides, first.out, first.strides,
                               array_index(array, number, box.start));
    for (const Assembly::Part& part : parts.subspan(1))
      copy_strided(box.shape, array.type().itemsize, first.out, first.strides, part.out,
                   part.strides);
    for (const Assembly::Part& part : parts) part.copy_to_repeats(array.type().itemsize);
    if (raw) {
      DecodedChunk decoded{box, first.out, first.strides, consumer.assembly->memory,
                           object_missing};
      for (const ChunkConsumer& other : consumers)
        if (&other != &consumer) gather(other, decoded);
      if (consumer.assembly->shares_memory) result.chunk = std::move(decoded);
    }
    return result;
  }
  struct Memory {
    Budget::Reservation reservation;
    Buffer buffer;
  };
  auto memory = std::make_shared<Memory>();
  const Dims strides = c_strides(box.shape, array.type().itemsize);
  reserve_passing(strides);
  if (kept.bytes() == taken)
    memory->reservation = std::move(kept);
  else
    reserve(memory->reservation, taken);
  memory->buffer = Buffer(bytes);
  load(memory->buffer.data(), strides);
  std::byte* data = memory->buffer.data();
  result.chunk = DecodedChunk{box, data, strides, std::move(memory), object_missing};
  result.cache_bytes = taken;
  for (const ChunkConsumer& consumer : consumers) gather(consumer, *result.chunk);
  // Fill values of a missing chunk are not mixed with values that may appear.
  if (object_missing) return result;
  for (ChunkConsumer& other : others) {
    const std::optional<Box> rest = without(other.missing, box);
    if (!rest) continue;
    gather(other, *result.chunk);
    other.missing = *rest;
  }
  return result;
}

}  // namespace batchfs
