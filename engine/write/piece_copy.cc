#include "engine/write/piece_copy.h"

#include <algorithm>
#include <memory>
#include <span>

#include <zstd.h>

#include "engine/base/per_thread.h"
#include "engine/write/region_boxes.h"
#include "engine/zarr/chunk_grid.h"

namespace batchfs {

namespace {

constexpr int kPieceLevel = 1;                    // read once, soon: speed counts
constexpr std::int64_t kSlabBytes = 128 << 10;    // of a piece, gathered or scattered at a time
constexpr std::size_t kEncodedBytes = 128 << 10;  // at a time

struct PieceContexts {
  ZSTD_CCtx* const compressor = ZSTD_createCCtx();
  ZSTD_DCtx* const decompressor = ZSTD_createDCtx();
  Buffer slab, encoded;
  PieceContexts() : encoded(kEncodedBytes) {
    if (compressor == nullptr || decompressor == nullptr)
      throw Error(ErrorCode::no_memory, "no memory for the zstd encoder");
    ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, kPieceLevel);
    ZSTD_CCtx_setParameter(compressor, ZSTD_c_checksumFlag, 1);
  }
  ~PieceContexts() {
    ZSTD_freeCCtx(compressor);
    ZSTD_freeDCtx(decompressor);
  }
  std::byte* slab_of(std::size_t bytes) {
    if (slab.size() < bytes) slab = Buffer(bytes);
    return slab.data();
  }
};

PieceContexts& piece_contexts() {
  static PerThread<PieceContexts> contexts;
  return contexts.get();
}

/// Calls use(start, shape) for boxes of at most `most` elements, or one, that follow one another in
/// a box of the shape `all` in C order.
template <class Use>
void for_each_slab(const Dims& all, std::int64_t most, Use&& use) {
  std::size_t d = all.size();
  std::int64_t below = 1;  // elements of one step along dimension d - 1
  while (d > 0 && below * all[d - 1] <= most) below *= all[--d];
  Dims start(all.size()), shape = all;
  if (d == 0) return use(start, shape);
  const std::size_t cut = d - 1;
  for (std::size_t o = 0; o < cut; ++o) shape[o] = 1;
  const std::int64_t step = std::max<std::int64_t>(1, most / below);
  for (;;) {
    for (start[cut] = 0; start[cut] < all[cut]; start[cut] += step) {
      shape[cut] = std::min(step, all[cut] - start[cut]);
      use(start, shape);
    }
    std::size_t o = cut;
    while (o > 0 && ++start[o - 1] == all[o - 1]) start[--o] = 0;
    if (o == 0) return;
  }
}

/// Encodes a piece that comes in slabs, without room for all of it at once.
class PieceEncoder {
 public:
  PieceEncoder(PieceContexts& contexts, std::uint64_t bytes) : contexts_(contexts) {
    ZSTD_CCtx_reset(contexts_.compressor, ZSTD_reset_session_only);
    check(ZSTD_CCtx_setPledgedSrcSize(contexts_.compressor, bytes));
  }
  void add(std::span<const std::byte> bytes) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    while (in.pos < in.size) {
      check(ZSTD_compressStream2(contexts_.compressor, &out_, &in, ZSTD_e_continue));
      if (out_.pos == out_.size) keep();
    }
  }
  std::vector<Buffer> finish() {
    ZSTD_inBuffer in{nullptr, 0, 0};
    for (std::size_t left = 1; left > 0;) {
      left = check(ZSTD_compressStream2(contexts_.compressor, &out_, &in, ZSTD_e_end));
      if (left == 0 || out_.pos == out_.size) keep();
    }
    return std::move(encoded_);
  }

 private:
  static std::size_t check(std::size_t result) {
    if (ZSTD_isError(result)) throw Error(ErrorCode::internal, ZSTD_getErrorName(result));
    return result;
  }
  void keep() {
    if (out_.pos == 0) return;
    Buffer exact(out_.pos);
    std::copy_n(contexts_.encoded.data(), out_.pos, exact.data());
    encoded_.push_back(std::move(exact));
    out_.pos = 0;
  }

  PieceContexts& contexts_;
  ZSTD_outBuffer out_{contexts_.encoded.data(), contexts_.encoded.size(), 0};
  std::vector<Buffer> encoded_;
};

/// Decodes a piece from a part of an object, slab by slab.
class PieceDecoder {
 public:
  PieceDecoder(PieceContexts& contexts, OutputStore& store, const std::string& key,
               std::uint64_t begin, std::uint64_t end)
      : contexts_(contexts), store_(store), key_(key), next_(begin), end_(end) {
    ZSTD_DCtx_reset(contexts_.decompressor, ZSTD_reset_session_only);
  }
  void fill(std::span<std::byte> bytes) {
    ZSTD_outBuffer out{bytes.data(), bytes.size(), 0};
    while (out.pos < out.size) {
      if (frame_ended_) throw damaged();
      step(out);
    }
  }
  /// The frame ends here, with a checksum that fits.
  void finish() {
    ZSTD_outBuffer none{nullptr, 0, 0};
    while (!frame_ended_) step(none);
    if (next_ != end_ || in_.pos != in_.size) throw damaged();
  }

 private:
  Error damaged() const {
    return Error(ErrorCode::corrupt, "a file of pieces is damaged; remove the output", key_);
  }
  void step(ZSTD_outBuffer& out) {
    const std::size_t out_before = out.pos, in_before = in_.pos;
    const std::size_t left = ZSTD_decompressStream(contexts_.decompressor, &out, &in_);
    if (ZSTD_isError(left)) throw damaged();
    frame_ended_ = left == 0;
    if (frame_ended_ || out.pos > out_before || in_.pos > in_before) return;
    if (next_ == end_) throw damaged();
    const auto size = std::min<std::uint64_t>(end_ - next_, contexts_.encoded.size());
    store_.read_part(key_, next_, contexts_.encoded.span().first(size));
    next_ += size;
    in_ = {contexts_.encoded.data(), size, 0};
  }

  PieceContexts& contexts_;
  OutputStore& store_;
  const std::string& key_;
  std::uint64_t next_;
  const std::uint64_t end_;
  ZSTD_inBuffer in_{contexts_.encoded.data(), 0, 0};
  bool frame_ended_ = false;
};

}  // namespace

std::string PieceForm::key(const Dims& read_region) const {
  std::string name = folder + "/region";
  for (const std::int64_t index : read_region) name += "." + std::to_string(index);
  return name;
}

PieceWriter::PieceWriter(PieceForm form, const Dims& read_region)
    : form_(std::move(form)), index_(read_region) {
  region_ = ChunkGrid(form_.shape, form_.plan.read_region).box(read_region);
  targets_ = units_in(region_, form_.plan.write_region);
  strides_ = c_strides(region_.shape, form_.itemsize);
  pieces_.resize(static_cast<std::size_t>(targets_.elements()));
  left_ = pieces_.size();
}

void PieceWriter::write(std::size_t item, const std::byte* values) {
  const Dims target = position_in(targets_, static_cast<std::int64_t>(item));
  const Box piece =
      shared_box(region_, ChunkGrid(form_.shape, form_.plan.write_region).box(target));
  const std::byte* const from = values + byte_offset(piece.start, region_.start, strides_);
  PieceContexts& contexts = piece_contexts();
  PieceEncoder encoder(contexts, static_cast<std::uint64_t>(piece.elements() * form_.itemsize));
  const Dims nowhere(piece.shape.size());
  for_each_slab(piece.shape, kSlabBytes / form_.itemsize,
                [&](const Dims& start, const Dims& shape) {
                  std::int64_t bytes = form_.itemsize;
                  for (const std::int64_t length : shape) bytes *= length;
                  std::byte* const slab = contexts.slab_of(static_cast<std::size_t>(bytes));
                  copy_strided(shape, static_cast<std::size_t>(form_.itemsize),
                               from + byte_offset(start, nowhere, strides_), strides_, slab,
                               c_strides(shape, form_.itemsize));
                  encoder.add({slab, static_cast<std::size_t>(bytes)});
                });
  pieces_[item] = encoder.finish();
  if (--left_ > 0) return;
  std::vector<std::uint64_t> offsets{(pieces_.size() + 1) * sizeof(std::uint64_t)};
  std::vector<std::span<const std::byte>> parts{{}};
  for (const std::vector<Buffer>& one : pieces_) {
    offsets.push_back(offsets.back());
    for (const Buffer& part : one) {
      offsets.back() += part.size();
      parts.push_back(part.span());
    }
  }
  parts.front() = std::as_bytes(std::span(offsets));
  form_.store.put(form_.key(index_), parts);
  pieces_.clear();
}

PieceReader::PieceReader(PieceForm form, const Dims& write_region)
    : form_(std::move(form)), index_(write_region) {
  region_ = ChunkGrid(form_.shape, form_.plan.write_region).box(write_region);
  sources_ = units_in(region_, form_.plan.read_region);
  strides_ = c_strides(region_.shape, form_.itemsize);
  items_ = static_cast<std::size_t>(sources_.elements());
}

void PieceReader::read(std::size_t item, std::byte* values) const {
  const Dims source = position_in(sources_, static_cast<std::int64_t>(item));
  const Box from = ChunkGrid(form_.shape, form_.plan.read_region).box(source);
  const Box piece = shared_box(from, region_);
  const Box targets = units_in(from, form_.plan.write_region);
  const std::string key = form_.key(source);
  std::uint64_t ends[2];
  form_.store.read_part(
      key, static_cast<std::uint64_t>(number_in(targets, index_)) * sizeof(std::uint64_t),
      std::as_writable_bytes(std::span(ends)));
  if (ends[1] < ends[0])
    throw Error(ErrorCode::corrupt, "a file of pieces is damaged; remove the output", key);
  std::byte* const to = values + byte_offset(piece.start, region_.start, strides_);
  PieceContexts& contexts = piece_contexts();
  PieceDecoder decoder(contexts, form_.store, key, ends[0], ends[1]);
  const Dims nowhere(piece.shape.size());
  for_each_slab(piece.shape, kSlabBytes / form_.itemsize,
                [&](const Dims& start, const Dims& shape) {
                  std::int64_t bytes = form_.itemsize;
                  for (const std::int64_t length : shape) bytes *= length;
                  std::byte* const slab = contexts.slab_of(static_cast<std::size_t>(bytes));
                  decoder.fill({slab, static_cast<std::size_t>(bytes)});
                  copy_strided(shape, static_cast<std::size_t>(form_.itemsize), slab,
                               c_strides(shape, form_.itemsize),
                               to + byte_offset(start, nowhere, strides_), strides_);
                });
  decoder.finish();
}

}  // namespace batchfs
