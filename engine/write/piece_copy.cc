#include "engine/write/piece_copy.h"

#include <algorithm>
#include <memory>

#include <zstd.h>

#include "engine/base/per_thread.h"
#include "engine/write/region_boxes.h"
#include "engine/zarr/chunk_grid.h"

namespace batchfs {

namespace {

constexpr int kPieceLevel = 1;  // read once, soon: speed counts

struct PieceContexts {
  ZSTD_CCtx* const compressor = ZSTD_createCCtx();
  ZSTD_DCtx* const decompressor = ZSTD_createDCtx();
  PieceContexts() {
    if (compressor == nullptr || decompressor == nullptr)
      throw Error(ErrorCode::no_memory, "no memory for the zstd encoder");
    ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, kPieceLevel);
    ZSTD_CCtx_setParameter(compressor, ZSTD_c_checksumFlag, 1);
  }
  ~PieceContexts() {
    ZSTD_freeCCtx(compressor);
    ZSTD_freeDCtx(decompressor);
  }
};

PieceContexts& piece_contexts() {
  static PerThread<PieceContexts> contexts;
  return contexts.get();
}

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
  const auto bytes = static_cast<std::size_t>(piece.elements() * form_.itemsize);
  Buffer elements(bytes);
  copy_strided(piece.shape, static_cast<std::size_t>(form_.itemsize),
               values + byte_offset(piece.start, region_.start, strides_), strides_,
               elements.data(), c_strides(piece.shape, form_.itemsize));
  Buffer encoded(ZSTD_compressBound(bytes));
  const std::size_t size = ZSTD_compress2(piece_contexts().compressor, encoded.data(),
                                          encoded.size(), elements.data(), bytes);
  if (ZSTD_isError(size)) throw Error(ErrorCode::internal, ZSTD_getErrorName(size));
  Buffer exact(size);
  std::copy_n(encoded.data(), size, exact.data());
  pieces_[item] = std::move(exact);
  if (--left_ > 0) return;
  std::vector<std::uint64_t> offsets{(pieces_.size() + 1) * sizeof(std::uint64_t)};
  std::vector<std::span<const std::byte>> parts{{}};
  for (const Buffer& one : pieces_) {
    offsets.push_back(offsets.back() + one.size());
    parts.push_back(one.span());
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
  const auto bytes = static_cast<std::size_t>(piece.elements() * form_.itemsize);
  if (ends[1] < ends[0] || ends[1] - ends[0] > ZSTD_compressBound(bytes))
    throw Error(ErrorCode::corrupt, "a file of pieces is damaged; remove the output", key);
  Buffer encoded(ends[1] - ends[0]);
  form_.store.read_part(key, ends[0], encoded.span());
  Buffer elements(bytes);
  const std::size_t got = ZSTD_decompressDCtx(piece_contexts().decompressor, elements.data(), bytes,
                                              encoded.data(), encoded.size());
  if (ZSTD_isError(got) || got != bytes)
    throw Error(ErrorCode::corrupt, "a file of pieces is damaged; remove the output", key);
  copy_strided(piece.shape, static_cast<std::size_t>(form_.itemsize), elements.data(),
               c_strides(piece.shape, form_.itemsize),
               values + byte_offset(piece.start, region_.start, strides_), strides_);
}

}  // namespace batchfs
