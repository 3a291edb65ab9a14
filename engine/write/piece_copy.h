#pragma once
// The pieces between the two passes of a rechunk: the intersection of a region of the first pass
// with each region of the second.
//
// The pieces of a region of the first pass are one object: the offsets of all pieces and the end as
// 64-bit numbers, then the pieces. A piece is the stored sizes of its slabs as 32-bit numbers, then
// the slabs (piece_codec.h), of which both sides know the shapes. Several threads process items,
// like in region_copy.h.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/store/output/output_store.h"
#include "engine/write/rechunk_plan.h"

namespace batchfs {

/// The parameters that both sides must agree on.
struct PieceForm {
  OutputStore& store;
  std::string folder;  // a key
  Dims shape;          // of the array
  std::int64_t itemsize = 1;
  const RechunkPlan& plan;

  std::string key(const Dims& read_region) const;
};

using SlabSize = std::uint32_t;  // stored bytes

class PieceWriter {
 public:
  PieceWriter(PieceForm form, const Dims& read_region);
  std::size_t items() const { return pieces_.size(); }
  void write(std::size_t item, const std::byte* values);

 private:
  struct Piece {
    std::vector<SlabSize> sizes;
    std::vector<Buffer> slabs;
  };
  const PieceForm form_;
  const Dims index_;
  Box region_, targets_;
  Dims strides_;  // bytes
  std::vector<Piece> pieces_;
  std::atomic<std::size_t> left_;
};

class PieceReader {
 public:
  PieceReader(PieceForm form, const Dims& write_region);
  std::size_t items() const { return items_; }
  void read(std::size_t item, std::byte* values) const;

 private:
  const PieceForm form_;
  const Dims index_;
  Box region_, sources_;
  Dims strides_;  // bytes
  std::size_t items_ = 0;
};

}  // namespace batchfs
