#include "engine/array/array.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <future>

#include <fmt/format.h>

#include "engine/array/chunk_part.h"
#include "engine/array/looks_like.h"
#include "engine/array/past_caches.h"
#include "engine/array/pieces.h"
#include "engine/array/shard_layout.h"
#include "engine/store/object_versions.h"
#include "engine/store/wrong_bytes.h"

namespace batchfs {

namespace {

void raise(std::atomic<std::uint64_t>& largest, std::uint64_t value) {
  std::uint64_t before = largest.load(std::memory_order_relaxed);
  while (value > before &&
         !largest.compare_exchange_weak(before, value, std::memory_order_relaxed)) {
  }
}

/// Values that were delivered show that the array existed: a removal after them must be noticed.
FetchDone once_known(const ChunkLocator& locator, FetchDone done) {
  ArrayPresence& presence = locator.presence();
  if (presence.is_known()) return done;
  return
      [&presence, done = std::move(done)](std::variant<EncodedChunk, std::exception_ptr> outcome) {
        if (presence.is_known()) return done(std::move(outcome));
        auto kept =
            std::make_shared<std::variant<EncodedChunk, std::exception_ptr>>(std::move(outcome));
        presence.when_known([done, kept] { done(std::move(*kept)); });
      };
}

}  // namespace

Array::Array(std::shared_ptr<Store> store, std::shared_ptr<const ArrayMetadata> metadata)
    : store_(std::move(store)), metadata_(std::move(metadata)) {
  const std::string& path = metadata_->path;
  try {
    if (!metadata_->unsupported.empty())
      throw Error(ErrorCode::not_supported, metadata_->unsupported);
    if (metadata_->type.is_variable())
      throw Error(ErrorCode::not_supported,
                  "strings of any length have no file of their own; batchfs cat writes them");
    std::shared_ptr<const ShardLayout> shards = shard_layout_of(*metadata_);
    if (shards != nullptr) {
      grid_ = ChunkGrid(metadata_->shape, shards->inner_shape);
      chain_ = std::shared_ptr<const CodecChain>(shards, shards->inner.get());
    } else {
      grid_ = ChunkGrid(metadata_->shape, metadata_->chunk_shape);
      chain_ = std::make_shared<CodecChain>(metadata_->codecs, chunk_layout_of(*metadata_));
    }
    locator_ = std::make_shared<const ChunkLocator>(store_, metadata_, std::move(shards));
  } catch (Error& error) {
    throw error.at(path.empty() ? "/" : path);
  }
}

std::string Array::chunk_name(const Dims& chunk) const {
  std::string name = metadata_->path.empty() ? "" : metadata_->path + "/";
  const std::size_t first = metadata_->key_encoding.leading;
  for (std::size_t d = first; d < chunk.size(); ++d)
    name += (d > first ? "." : "") + std::to_string(chunk[d]);
  return chunk.size() <= first ? name + "0" : name;
}

Error Array::at_chunk(const Error& error, const Dims& chunk) const {
  const std::string name = chunk_name(chunk);
  if (error.where().starts_with(name)) return error;
  return Error(error.code(), error.why(),
               name + (error.where().empty() ? "" : ", " + error.where()));
}

FetchDone Array::naming(const Dims& chunk, FetchDone done) const {
  return [this, chunk,
          done = std::move(done)](std::variant<EncodedChunk, std::exception_ptr> outcome) {
    if (auto* failed = std::get_if<std::exception_ptr>(&outcome)) {
      try {
        std::rethrow_exception(*failed);
      } catch (const Error& error) {
        outcome = std::make_exception_ptr(at_chunk(error, chunk));
      } catch (...) {
      }
    }
    done(std::move(outcome));
  };
}

void Array::give_missing(const std::string& key, FetchDone done) const {
  locator_->confirm_missing(key, [done = std::move(done)](std::exception_ptr error) {
    if (error) return done(std::move(error));
    EncodedChunk missing;
    missing.object_missing = true;
    done(std::move(missing));
  });
}

void Array::give_short(const std::string& key, const Error& damaged, FetchDone done) const {
  store_->read_async(
      key, {0, 1}, [this, key, damaged, done = std::move(done)](ReadOutcome outcome) {
        if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(std::move(*error));
        const bool exists = std::get<std::optional<Buffer>>(outcome).has_value();
        done(std::make_exception_ptr(exists ? damaged
                                            : ObjectVersions::vanished(store_->url() + "/" + key)));
      });
}

EncodedChunk Array::local_missing(const std::string& key) const {
  EncodedChunk missing;
  std::exception_ptr failed;
  give_missing(
      key,
      [&](std::variant<EncodedChunk, std::exception_ptr> outcome) {  // called before it returns
        if (auto* error = std::get_if<std::exception_ptr>(&outcome))
          failed = *error;
        else
          missing = std::move(std::get<EncodedChunk>(outcome));
      });
  if (failed) std::rethrow_exception(failed);
  return missing;
}

std::int64_t Array::object_number(std::int64_t chunk) const {
  if (!is_sharded()) return chunk;
  const Dims index = grid_.chunk(chunk);
  std::int64_t number = 0;
  for (std::size_t d = 0; d < index.size(); ++d) {
    const std::int64_t per_shard = metadata_->chunk_shape[d] / grid_.chunk_shape()[d];
    const std::int64_t shards =
        (shape()[d] + metadata_->chunk_shape[d] - 1) / metadata_->chunk_shape[d];
    number = number * shards + index[d] / per_shard;
  }
  return number;
}

void Array::fetch(const Dims& chunk, const Box& part, FetchDone unnamed) const {
  const FetchDone done = or_past_caches({*store_, *locator_, *chain_}, chunk,
                                        naming(chunk, once_known(*locator_, std::move(unnamed))));
  auto give = [this, done](const std::string& key, ReadOutcome outcome, std::uint64_t offset,
                           std::optional<std::uint64_t> exact) {
    if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(*error);
    auto& bytes = std::get<std::optional<Buffer>>(outcome);
    if (!bytes) return give_missing(key, done);
    if (exact && bytes->size() != *exact)
      return give_short(key, ends_early(bytes->size(), *exact), done);
    if (bytes->size() > chain_->encoded_bound())
      return done(std::make_exception_ptr(chain_->too_long(bytes->size())));
    if (!chain_->is_plain()) raise(largest_stored_, bytes->size());
    EncodedChunk encoded;
    encoded.missing = false;
    encoded.bytes = std::move(*bytes);
    encoded.offset = offset;
    done(std::move(encoded));
  };
  const bool partial = chain_->is_plain();
  const ElementRun elements = run_of(grid_.chunk_shape(), part);
  const std::uint64_t itemsize = type().itemsize;
  locator_->locate(
      chunk, [this, give, partial, elements, itemsize, done](ChunkLocator::Outcome outcome) {
        if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(*error);
        const auto& [place, object_missing] = std::get<ChunkLocator::Location>(outcome);
        if (!place) return done(EncodedChunk{.object_missing = object_missing});
        const std::uint64_t run = elements.count * itemsize;
        const bool whole = !partial || run == chain_->decoded_size();
        try {
          // In a local store the size of an object costs nothing to ask for.
          const bool ask = !place->length && !whole && store_->is_local();
          if (const auto size = ask ? store_->size(place->key) : place->length)
            chain_->check_stored_size(*size);
        } catch (...) {
          return done(std::current_exception());
        }
        ByteRange part_range{place->offset + elements.first * itemsize, run};
        std::optional<std::uint64_t> exact = run;
        if (whole) {
          // This is enough to see that an object is longer than it should be. Elsewhere a whole
          // object is one request, whose answer is not read any further.
          const std::uint64_t bound = chain_->encoded_bound();
          part_range = {place->offset,
                        place->length.value_or(store_->is_local() ? bound + 1 : UINT64_MAX)};
          if (!place->length && !store_->is_local()) part_range.largest = bound;
          exact = place->length;
        }
        const std::uint64_t offset = part_range.offset - place->offset;
        const bool in_shard = place->length.has_value();
        const auto arrive = [this, give, exact, offset, in_shard, key = place->key](auto answer) {
          ReadOutcome read;
          if (auto* error = std::get_if<std::exception_ptr>(&answer)) {
            read = std::move(*error);
          } else {
            auto& got = std::get<Store::VersionedRead>(answer);
            // A shard that existed a moment ago and no longer exists is not a missing chunk.
            if (in_shard && !got.bytes)
              read = std::make_exception_ptr(
                  Error(ErrorCode::stale, "the shard has gone while it was read"));
            else
              read = std::move(got.bytes);
            try {
              if (!in_shard && got.object_size) chain_->check_stored_size(*got.object_size);
            } catch (...) {
              read = std::current_exception();
            }
          }
          give(key, std::move(read), offset, exact);
        };
        store_->read_version_async(place->key, part_range, {}, arrive);
      });
}

void Array::fetch_pieces(const Dims& chunk, const Box& part,
                         std::shared_ptr<const EncodedChunk> have, FetchDone unnamed) const {
  const ElementRun run = run_of(grid_.chunk_shape(), part);
  const FetchDone done = or_past_caches({*store_, *locator_, *chain_}, chunk,
                                        naming(chunk, once_known(*locator_, std::move(unnamed))));
  locator_->locate(chunk, [this, chunk, have, done, run](ChunkLocator::Outcome outcome) {
    if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(*error);
    auto& [place, object_missing] = std::get<ChunkLocator::Location>(outcome);
    if (!place) return done(EncodedChunk{.object_missing = object_missing});
    const auto missing = [this, key = place->key](FetchDone to) {
      give_missing(key, std::move(to));
    };
    const auto cut_short = [this, key = place->key](const Error& damaged, FetchDone to) {
      give_short(key, damaged, std::move(to));
    };
    const auto whole = [this, chunk](FetchDone to) {
      fetch(chunk, whole_box(grid_.chunk_shape()), std::move(to));
    };
    fetch_run({*store_, *chain_, std::move(*place), run.first, run.count}, have.get(),
              {whole, missing, cut_short}, done);
  });
}

bool Array::holds(const EncodedChunk& encoded, const Box& part) const {
  if (encoded.pieces.empty() || part.empty()) return true;
  const ElementRun run = run_of(grid_.chunk_shape(), part);
  std::uint64_t more = 0;
  const auto lacking = lacking_spans(*chain_, encoded, run.first, run.count, &more);
  return lacking && lacking->empty();
}

std::future<EncodedChunk> Array::start_fetch(const Dims& chunk, const Box& part) const {
  const auto promise = std::make_shared<std::promise<EncodedChunk>>();
  fetch(chunk, part, [promise](std::variant<EncodedChunk, std::exception_ptr> outcome) {
    if (auto* error = std::get_if<std::exception_ptr>(&outcome))
      promise->set_exception(*error);
    else
      promise->set_value(std::move(std::get<EncodedChunk>(outcome)));
  });
  return promise->get_future();
}

EncodedChunk Array::fetch(const Dims& chunk, const Box& part) const {
  return start_fetch(chunk, part).get();
}

std::optional<Array::Stored> Array::find_stored(const Dims& chunk, bool* object_missing) const {
  try {
    const auto [place, is_object_missing] = locator_->locate_local(chunk);
    if (object_missing != nullptr) *object_missing = is_object_missing;
    if (!place) return std::nullopt;
    const std::optional<std::uint64_t> size =
        place->length ? place->length : store_->size(place->key);
    if (!size) {
      if (object_missing != nullptr) *object_missing = true;
      local_missing(place->key);
      return std::nullopt;
    }
    chain_->check_stored_size(*size);
    return Stored{place->key, place->offset, *size, !place->length};
  } catch (const Error& error) {
    throw at_chunk(error, chunk);
  }
}

void Array::read_stored(const Dims& chunk, const Stored& stored, std::uint64_t offset,
                        std::span<std::byte> out) const {
  try {
    const auto got = store_->read_into(stored.key, stored.offset + offset, out);
    if (!got || got->bytes != out.size() || (stored.is_object && got->object_size != stored.size))
      throw Error(ErrorCode::stale, "the stored chunk changed while it was read");
  } catch (const Error& error) {
    throw at_chunk(error, chunk);
  }
}

std::uint64_t Array::run_bytes(const Box& part) const {
  return part.empty() ? 0 : run_of(grid_.chunk_shape(), part).count * type().itemsize;
}

bool Array::decodes_directly(const Box& part, const Dims& out_strides) const {
  return batchfs::decodes_directly({*chain_, grid_.chunk_shape(), type().itemsize}, part,
                                   out_strides);
}

std::uint64_t Array::scratch_bytes(const Box& part, const Dims& out_strides) const {
  return batchfs::scratch_bytes({*chain_, grid_.chunk_shape(), type().itemsize}, part, out_strides);
}

void Array::write_fill(const Box& part, std::byte* out, const Dims& strides) const {
  copy_strided(part.shape, type().itemsize, metadata_->fill_value.data(), Dims(part.shape.size()),
               out, strides);
}

std::uint64_t Array::decode(const Dims& chunk, const EncodedChunk& encoded, const Box& part,
                            std::byte* out, const Dims& strides) const {
  if (part.empty()) return 0;
  if (encoded.missing) {
    write_fill(part, out, strides);
    return static_cast<std::uint64_t>(part.elements()) * type().itemsize;
  }
  const auto decode_from = [&](const EncodedChunk& stored) {
    if (chain_->has_ranges() && stored.pieces.empty())
      raise(largest_block_,
            std::min(chain_->range_granularity(stored.bytes.span()), chunk_bytes()));
    return decode_part({*chain_, grid_.chunk_shape(), type().itemsize}, stored, part, out, strides);
  };
  EncodedChunk again;
  try {
    try {
      return decode_from(encoded);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::corrupt || store_->is_local()) throw;
    }
    again = fetch_past_caches({*store_, *locator_, *chain_}, chunk);
    if (!again.missing) return decode_from(again);
  } catch (const Error& error) {
    const EncodedChunk& last = again.missing ? encoded : again;
    throw at_chunk(with_wrong_bytes(error, last.bytes.span(), looks_like(chain_->specs())), chunk);
  }
  throw at_chunk(ObjectVersions::vanished(chunk_name(chunk)), chunk);
}

std::uint64_t Array::load(const Dims& chunk, const Box& part, std::byte* out, const Dims& strides,
                          Loaded* loaded) const {
  std::optional<EncodedChunk> encoded;
  try {
    if (!is_sharded() && chain_->is_identity() && !part.empty() &&
        decodes_directly(part, strides)) {
      const auto [first, count] = run_of(grid_.chunk_shape(), part);
      const std::uint64_t bytes = count * type().itemsize;
      const std::string key = locator_->object_key(chunk);
      const auto got = store_->read_into(key, first * type().itemsize, {out, bytes});
      if (got) {
        if (got->object_size != chain_->decoded_size() || got->bytes != bytes)
          throw Error(ErrorCode::corrupt,
                      fmt::format("the stored chunk has {} bytes, {} were expected",
                                  got->object_size, chain_->decoded_size()),
                      chunk_name(chunk));
        loaded->fetched += bytes;
        return bytes;
      }
      encoded = local_missing(key);
    } else {
      encoded = read_spans(chunk, part, &loaded->fetched);
    }
  } catch (const Error& error) {
    throw at_chunk(error, chunk);
  }
  if (!encoded) {
    encoded = fetch(chunk, part);
    loaded->fetched += encoded->bytes.size();
  }
  loaded->object_missing = encoded->object_missing;
  return decode(chunk, *encoded, part, out, strides);
}

std::optional<EncodedChunk> Array::read_spans(const Dims& chunk, const Box& part,
                                              std::uint64_t* bytes_fetched) const {
  // Elsewhere each span is a round trip, and where a chunk lies is answered later.
  if (!store_->is_local()) return std::nullopt;
  if (!chain_->has_ranges() || part.empty()) return std::nullopt;
  const auto [first, count] = run_of(grid_.chunk_shape(), part);
  if (count * type().itemsize > chain_->decoded_size() / 2) return std::nullopt;
  const auto [place, object_missing] = locator_->locate_local(chunk);
  if (!place) return EncodedChunk{.object_missing = object_missing};
  // Address space for the whole object; only the bytes read touch memory.
  std::byte first_head[kFirstHead];
  auto got = store_->read_into(place->key, place->offset, {first_head, kFirstHead});
  if (!got) return place->length ? std::nullopt : std::optional(local_missing(place->key));
  const std::uint64_t stored = place->length.value_or(got->object_size);
  if (stored > chain_->encoded_bound()) return std::nullopt;
  std::uint64_t head = std::min<std::uint64_t>(got->bytes, stored), more = 0;
  auto spans = chain_->stored_spans({first_head, head}, stored, first, count, &more);
  EncodedChunk encoded;
  encoded.missing = false;
  if (!spans && (more <= head || more > stored)) return std::nullopt;
  encoded.bytes = Buffer(stored);
  std::memcpy(encoded.bytes.data(), first_head, head);
  if (!spans) {
    got = store_->read_into(place->key, place->offset, encoded.bytes.span().first(more));
    if (!got || got->bytes != more) return std::nullopt;
    head = more;
    spans = chain_->stored_spans(encoded.bytes.span().first(head), stored, first, count, &more);
    if (!spans) return std::nullopt;
  }
  *bytes_fetched += head;
  for (const Codec::Span& span : *spans) {
    got = store_->read_into(place->key, place->offset + span.offset,
                            encoded.bytes.span().subspan(span.offset, span.length));
    // the object changed: reading all of it reports that
    if (!got || got->bytes != span.length) return std::nullopt;
    *bytes_fetched += span.length;
  }
  return encoded;
}

void Array::read(const Box& box, std::byte* out) const {
  if (box.empty()) return;
  const Dims strides = c_strides(box.shape, type().itemsize);
  const std::size_t rank = box.shape.size();
  Dims first(rank), last(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    first[d] = box.start[d] / grid_.chunk_shape()[d];
    last[d] = (box.start[d] + box.shape[d] - 1) / grid_.chunk_shape()[d];
  }
  Loaded loaded;
  // Where a read is a round trip, many are in flight at once.
  struct Pending {
    Dims chunk;
    Box part;
    std::byte* to;
    std::future<EncodedChunk> encoded;
  };
  std::deque<Pending> pending;
  const std::size_t most_pending = store_->is_local() ? 0 : 64;
  auto finish_first = [&] {
    Pending next = std::move(pending.front());
    pending.pop_front();
    EncodedChunk encoded;
    try {
      encoded = next.encoded.get();
    } catch (const Error& error) {
      throw error.where() == chunk_name(next.chunk) ? error : at_chunk(error, next.chunk);
    }
    decode(next.chunk, encoded, next.part, next.to, strides);
  };
  // Reads in flight use this array: they end before an error propagates.
  struct Wait {
    std::deque<Pending>& pending;
    ~Wait() {
      for (Pending& left : pending) left.encoded.wait();
    }
  } const wait{pending};
  for (Dims chunk = first;;) {
    Box part{Dims(rank), Dims(rank)};
    std::byte* to = out;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t origin = chunk[d] * grid_.chunk_shape()[d];
      const std::int64_t begin = std::max(box.start[d], origin);
      part.start[d] = begin - origin;
      part.shape[d] =
          std::min(box.start[d] + box.shape[d], origin + grid_.chunk_shape()[d]) - begin;
      to += (begin - box.start[d]) * strides[d];
    }
    if (most_pending == 0) {
      load(chunk, part, to, strides, &loaded);
    } else {
      if (pending.size() == most_pending) finish_first();
      pending.push_back({chunk, part, to, start_fetch(chunk, part)});
    }
    std::size_t d = rank;
    while (d > 0 && chunk[d - 1] == last[d - 1]) {
      chunk[d - 1] = first[d - 1];
      --d;
    }
    if (d == 0) break;
    ++chunk[d - 1];
  }
  while (!pending.empty()) finish_first();
}

}  // namespace batchfs
