#pragma once
// An array that can be read: its metadata, its codec chain, its store.
//
// Sharded arrays show their inner chunks as the chunk grid (as zarr-python's `.chunks` does): the
// shard index, which is read once and kept, locates each. A shard that is itself compressed, or
// follows a transpose, is one chunk.

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>

#include "engine/array/chunk_locator.h"
#include "engine/array/encoded_chunk.h"
#include "engine/base/dims.h"
#include "engine/codec/chain.h"
#include "engine/store/store.h"
#include "engine/zarr/array_metadata.h"
#include "engine/zarr/chunk_grid.h"

namespace batchfs {

/// Thread-safe.
class Array {
 public:
  /// Throws not_supported when the metadata or a codec is not handled.
  Array(std::shared_ptr<Store> store, std::shared_ptr<const ArrayMetadata> metadata);

  const ArrayMetadata& metadata() const { return *metadata_; }
  const DataType& type() const { return metadata_->type; }
  const Dims& shape() const { return metadata_->shape; }
  Store& store() const { return *store_; }
  const std::shared_ptr<Store>& shared_store() const { return store_; }

  /// The chunks that can be read alone; for sharded arrays the inner chunks.
  const ChunkGrid& grid() const { return grid_; }
  /// Bytes of one decoded chunk.
  std::uint64_t chunk_bytes() const { return chain_->decoded_size(); }
  const CodecChain& chain() const { return *chain_; }
  /// Stored bytes of the largest chunk that fetch() got whole so far; 0: none yet.
  std::uint64_t largest_stored() const { return largest_stored_.load(std::memory_order_relaxed); }
  /// Bytes that a part of a chunk is decoded in at least, decoded (a Blosc block); the largest of
  /// the chunks that were decoded so far, 0: none yet.
  std::uint64_t largest_block() const { return largest_block_.load(std::memory_order_relaxed); }
  /// Bytes of the run of elements, in C order, from the first of `part` (chunk coordinates) to its
  /// last.
  std::uint64_t run_bytes(const Box& part) const;
  /// Bytes of memory that decode() of `part` to `out_strides` takes beside its input and output, at
  /// most.
  std::uint64_t scratch_bytes(const Box& part, const Dims& out_strides) const;
  bool is_sharded() const { return locator_->is_sharded(); }

  /// "t2m/3.0.0": array path and chunk index, as logs and errors name a chunk.
  std::string chunk_name(const Dims& chunk) const;

  /// Fetches the bytes needed to decode `part` (a box in chunk coordinates) of a chunk. `done` is
  /// called once, from any thread, possibly before this returns. For a sharded array this may be
  /// two reads.
  void fetch(const Dims& chunk, const Box& part, FetchDone done) const;
  /// The same, blocking.
  EncodedChunk fetch(const Dims& chunk, const Box& part) const;

  /// Like fetch(), for a compressed chunk in a remote store, but fetches only the pieces that
  /// decode() of `part` reads: in two round trips, or in one when `have`, an earlier outcome for
  /// this chunk (may be null), is in pieces: its pieces are then reused. Fetches the whole chunk
  /// where it cannot be read in pieces.
  void fetch_pieces(const Dims& chunk, const Box& part, std::shared_ptr<const EncodedChunk> have,
                    FetchDone done) const;
  /// Can `part` be decoded from the fetched bytes?
  bool holds(const EncodedChunk& encoded, const Box& part) const;

  /// Throws stale unless the array is still in its store with the metadata that it was opened with.
  /// Blocks.
  void confirm_present() const { locator_->confirm_array(); }

  /// Where the stored form of a chunk lies, for callers that read it to memory of their own.
  struct Stored {
    std::string key;
    std::uint64_t offset = 0, size = 0;
    bool is_object = true;  // all of the object, not a member of a shard
  };
  /// nullopt: the chunk is missing; `object_missing` then reports whether its object is. Blocking;
  /// for local stores. Throws corrupt for an impossible size.
  std::optional<Stored> find_stored(const Dims& chunk, bool* object_missing = nullptr) const;
  /// Reads bytes [offset, offset + out.size()) of it. Throws stale when it has changed since it was
  /// found.
  void read_stored(const Dims& chunk, const Stored& stored, std::uint64_t offset,
                   std::span<std::byte> out) const;

  /// Would decode() write `part` straight into `out` with these strides, without a scratch copy?
  bool decodes_directly(const Box& part, const Dims& out_strides) const;

  /// Writes the elements of `part` (chunk coordinates) to `out`, native byte order, at `strides` in
  /// bytes. `encoded` must have been fetched for a box that holds `part`. Takes the cheapest way:
  /// the whole chunk straight to `out`, a run of elements, or the whole to scratch and a copy.
  /// Returns the bytes decoded. Throws corrupt naming the chunk.
  std::uint64_t decode(const Dims& chunk, const EncodedChunk& encoded, const Box& part,
                       std::byte* out, const Dims& strides) const;

  /// fetch() and decode() in one, blocking, in the cheapest way for a local store: bytes that pass
  /// unchanged from the file to `out` are read straight there.
  struct Loaded {
    std::uint64_t fetched = 0;    // bytes
    bool object_missing = false;  // see EncodedChunk
  };
  std::uint64_t load(const Dims& chunk, const Box& part, std::byte* out, const Dims& strides,
                     Loaded* loaded) const;

  /// A number of the object in which the chunk lies, among the array's objects.
  std::int64_t object_number(std::int64_t chunk) const;

  /// Reads a box of the array (array coordinates) into `out`, C order. Blocking, decoding one chunk
  /// after the other: for coordinates and tests; the pipeline decodes in parallel.
  void read(const Box& box, std::byte* out) const;

 private:
  /// From a local store: the stored chunk with only the bytes that `part` needs filled in; nullopt
  /// where that saves nothing or is not possible.
  std::optional<EncodedChunk> read_spans(const Dims& chunk, const Box& part,
                                         std::uint64_t* bytes_fetched) const;
  /// A chunk whose object does not exist: fill values, once the array's presence is confirmed.
  /// Errors name no chunk.
  void give_missing(const std::string& key, FetchDone done) const;
  /// Reports missing bytes of the object: stale if it has changed, which answers to ranges beyond
  /// its end do not show, else `damaged`.
  void give_short(const std::string& key, const Error& damaged, FetchDone done) const;
  EncodedChunk local_missing(const std::string& key) const;
  std::future<EncodedChunk> start_fetch(const Dims& chunk, const Box& part) const;
  Error at_chunk(const Error& error, const Dims& chunk) const;
  /// Errors then name the chunk.
  FetchDone naming(const Dims& chunk, FetchDone done) const;
  void write_fill(const Box& part, std::byte* out, const Dims& strides) const;

  std::shared_ptr<Store> store_;
  std::shared_ptr<const ArrayMetadata> metadata_;
  ChunkGrid grid_;
  std::shared_ptr<const CodecChain> chain_;
  std::shared_ptr<const ChunkLocator> locator_;
  mutable std::atomic<std::uint64_t> largest_stored_{0}, largest_block_{0};
};

}  // namespace batchfs
