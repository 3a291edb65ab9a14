#include "engine/array/chunk_part.h"

#include <cstring>

#include <fmt/format.h>

#include "engine/array/pieces.h"
#include "engine/base/per_thread.h"

namespace batchfs {

ElementRun run_of(const Dims& chunk_shape, const Box& part) {
  std::uint64_t first = 0, last = 0;
  for (std::size_t d = 0; d < chunk_shape.size(); ++d) {
    const auto n = static_cast<std::uint64_t>(chunk_shape[d]);
    first = first * n + static_cast<std::uint64_t>(part.start[d]);
    last = last * n + static_cast<std::uint64_t>(part.start[d] + part.shape[d] - 1);
  }
  return {first, last + 1 - first};
}

bool is_contiguous(const Dims& shape, const Dims& strides, std::int64_t itemsize) {
  std::int64_t expected = itemsize;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

bool decodes_directly(const ChunkForm& form, const Box& part, const Dims& strides) {
  if (!is_contiguous(part.shape, strides, form.itemsize)) return false;
  if (form.chain.is_plain())
    return run_of(form.shape, part).count == static_cast<std::uint64_t>(part.elements());
  return part == whole_box(form.shape);
}

std::uint64_t scratch_bytes(const ChunkForm& form, const Box& part, const Dims& strides) {
  const CodecChain& chain = form.chain;
  const std::uint64_t run =
      part.empty() ? 0 : run_of(form.shape, part).count * static_cast<std::uint64_t>(form.itemsize);
  if (chain.is_plain()) return chain.is_identity() ? 0 : run;
  if (decodes_directly(form, part, strides)) return chain.scratch_bytes();
  if (chain.has_ranges() && run <= chain.decoded_size() / 2) return run;
  return chain.decoded_size() + chain.scratch_bytes();
}

std::uint64_t decode_part(const ChunkForm& form, const EncodedChunk& encoded, const Box& part,
                          std::byte* out, const Dims& strides) {
  const CodecChain& chain = form.chain;
  const std::uint64_t itemsize = form.itemsize;
  const std::uint64_t part_bytes = static_cast<std::uint64_t>(part.elements()) * itemsize;
  const Dims chunk_strides = c_strides(form.shape, form.itemsize);
  const auto [first, count] = run_of(form.shape, part);
  const std::uint64_t run = count * itemsize;
  const bool in_pieces = !encoded.pieces.empty();
  // Kept: of fresh memory each page is cleared first, also where only a few are used.
  static PerThread<Buffer> scratches;
  Buffer& scratch = scratches.get();
  const std::span<const std::byte> bytes =
      in_pieces ? filled_in(chain, encoded, first, count, scratch) : encoded.bytes.span();
  const bool contiguous = is_contiguous(part.shape, strides, form.itemsize);
  // The run of elements from the part's first to its last, in `from`, to their places.
  auto place = [&](const std::byte* from) {
    copy_strided(part.shape, itemsize, from, chunk_strides, out, strides);
  };
  if (chain.is_plain()) {
    const std::uint64_t begin = first * itemsize - encoded.offset;
    if (encoded.offset > first * itemsize || begin + run > bytes.size() ||
        (encoded.offset == 0 && bytes.size() > chain.decoded_size()))
      throw Error(ErrorCode::corrupt,
                  fmt::format("the stored chunk has {} bytes, {} were expected",
                              encoded.offset + bytes.size(), chain.decoded_size()));
    if (chain.is_identity()) {
      place(bytes.data() + begin);
      return run;
    }
    Buffer elements(run);
    std::memcpy(elements.data(), bytes.data() + begin, run);
    chain.decode_plain(elements.span());
    place(elements.data());
    return run;
  }
  if (!in_pieces && part == whole_box(form.shape) && contiguous) {
    chain.decode(bytes, {out, part_bytes});
    return part_bytes;
  }
  if (in_pieces || (chain.has_ranges() && run <= chain.decoded_size() / 2)) {
    if (run == part_bytes && contiguous) {
      chain.decode_elements(bytes, first, count, {out, run});
    } else {
      Buffer elements(run);
      chain.decode_elements(bytes, first, count, elements.span());
      place(elements.data());
    }
    return run;
  }
  Buffer whole(chain.decoded_size());
  chain.decode(bytes, whole.span());
  place(whole.data() + first * itemsize);
  return chain.decoded_size();
}

}  // namespace batchfs
