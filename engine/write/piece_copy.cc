#include "engine/write/piece_copy.h"

#include <algorithm>
#include <memory>
#include <span>

#include "engine/base/per_thread.h"
#include "engine/write/piece_codec.h"
#include "engine/write/region_boxes.h"
#include "engine/zarr/chunk_grid.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kReadBytes = 512 << 10;  // of slabs, from a file at a time

struct PieceBuffers {
  Buffer slab, stored;
  static std::span<std::byte> of(Buffer& buffer, std::uint64_t bytes) {
    if (buffer.size() < bytes) buffer = Buffer(bytes);
    return buffer.span().first(bytes);
  }
};

PieceBuffers& piece_buffers() {
  static PerThread<PieceBuffers> buffers;
  return buffers.get();
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

/// A part of a piece: where its first element lies in the region's memory, from the piece's first,
/// and a buffer for its values in C order.
struct Slab {
  std::int64_t offset;  // bytes
  const Dims& shape;
  std::span<std::byte> values;
  Dims strides;  // of `values`, bytes
};

/// Calls use(slab) for the slabs of a piece, one after the other, all with the same buffer.
/// `strides`: of the region, bytes.
template <class Use>
void for_each_slab_buffer(const Dims& piece, std::int64_t itemsize, const Dims& strides,
                          Use&& use) {
  const Dims nowhere(piece.size());
  for_each_slab(piece, kSlabBytes / itemsize, [&](const Dims& start, const Dims& shape) {
    const auto bytes = static_cast<std::uint64_t>(element_count(shape) * itemsize);
    use(Slab{byte_offset(start, nowhere, strides), shape,
             PieceBuffers::of(piece_buffers().slab, bytes), c_strides(shape, itemsize)});
  });
}

std::size_t count_slabs(const Dims& piece, std::int64_t itemsize) {
  std::size_t count = 0;
  for_each_slab(piece, kSlabBytes / itemsize, [&count](const Dims&, const Dims&) { ++count; });
  return count;
}

Error damaged(const std::string& key) {
  return Error(ErrorCode::corrupt, "a file of pieces is damaged; remove the output", key);
}

/// The stored slabs of a piece, in order, from a part of an object.
class StoredSlabs {
 public:
  StoredSlabs(OutputStore& store, const std::string& key, std::uint64_t begin, std::uint64_t end,
              std::size_t count)
      : store_(store), key_(key), next_(begin), end_(end), sizes_(count) {
    if (end < begin || (end - begin) / sizeof(SlabSize) < count) throw damaged(key);
    store.read_part(key, begin, std::as_writable_bytes(std::span(sizes_)));
    next_ += count * sizeof(SlabSize);
  }

  /// Valid until the next call. `decoded`: bytes of its values.
  std::span<const std::byte> next(std::uint64_t decoded) {
    const std::uint64_t size = sizes_[number_++];
    if (size > encoded_slab_bound(decoded)) throw damaged(key_);
    if (size > left_.size()) refill(size);
    const std::span<const std::byte> slab = left_.first(size);
    left_ = left_.subspan(size);
    return slab;
  }

  void finish() const {
    if (next_ != end_ || !left_.empty()) throw damaged(key_);
  }

 private:
  /// Reads the slab that is due and those after it that fit.
  void refill(std::uint64_t size) {
    if (!left_.empty()) throw damaged(key_);
    for (std::size_t behind = number_;
         behind < sizes_.size() && size + sizes_[behind] <= kReadBytes; ++behind)
      size += sizes_[behind];
    if (size > end_ - next_) throw damaged(key_);
    const std::span<std::byte> stored = PieceBuffers::of(piece_buffers().stored, size);
    store_.read_part(key_, next_, stored);
    next_ += size;
    left_ = stored;
  }

  OutputStore& store_;
  const std::string& key_;
  std::uint64_t next_;
  const std::uint64_t end_;
  std::vector<SlabSize> sizes_;
  std::size_t number_ = 0;
  std::span<const std::byte> left_;  // read, not used yet
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
  const auto itemsize = static_cast<std::size_t>(form_.itemsize);
  Piece made;
  for_each_slab_buffer(piece.shape, form_.itemsize, strides_, [&](const Slab& slab) {
    copy_strided(slab.shape, itemsize, from + slab.offset, strides_, slab.values.data(),
                 slab.strides);
    made.slabs.push_back(encode_slab(slab.values, static_cast<std::uint32_t>(itemsize)));
    made.sizes.push_back(static_cast<SlabSize>(made.slabs.back().size()));
  });
  pieces_[item] = std::move(made);
  if (--left_ > 0) return;
  std::vector<std::uint64_t> offsets{(pieces_.size() + 1) * sizeof(std::uint64_t)};
  std::vector<std::span<const std::byte>> parts{{}};
  for (const Piece& one : pieces_) {
    parts.push_back(std::as_bytes(std::span(one.sizes)));
    offsets.push_back(offsets.back() + parts.back().size());
    for (const Buffer& slab : one.slabs) {
      offsets.back() += slab.size();
      parts.push_back(slab.span());
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
  std::byte* const to = values + byte_offset(piece.start, region_.start, strides_);
  StoredSlabs stored(form_.store, key, ends[0], ends[1], count_slabs(piece.shape, form_.itemsize));
  for_each_slab_buffer(piece.shape, form_.itemsize, strides_, [&](const Slab& slab) {
    if (!decode_slab(stored.next(slab.values.size()), slab.values)) throw damaged(key);
    copy_strided(slab.shape, static_cast<std::size_t>(form_.itemsize), slab.values.data(),
                 slab.strides, to + slab.offset, strides_);
  });
  stored.finish();
}

}  // namespace batchfs
