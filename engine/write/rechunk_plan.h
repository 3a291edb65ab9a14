#pragma once
// How an array is copied from chunks of one shape to objects of another within a memory limit.
//
// A region is a box of the array that is held in memory at a time. In one pass, regions are whole
// numbers of source chunks and of output objects along every dimension, so that each is read and
// written once. Where such a region does not fit, the array takes two passes over a temporary
// store: the first reads regions of whole source chunks and cuts them into pieces where the regions
// of the second pass, of whole output objects, meet them. Every stored byte and every piece is read
// once. (The plan of the Python package rechunker, whose intermediate chunks are these pieces.)

#include <cstdint>

#include "engine/base/dims.h"

namespace batchfs {

struct RechunkPlan {
  Dims read_region, write_region;  // elements; equal in one pass
  std::uint64_t read_bytes = 0;    // of a read region, decoded
  std::uint64_t write_bytes = 0;
  bool two_passes = false;
};

/// `read_chunk`: elements of the chunks that are decoded as a whole; `object`: of those that are
/// written as a whole. `limit`: bytes of a region, with the encoded pieces of one that is cut.
/// Throws no_memory, naming what it needs, when not even one chunk or object fits.
RechunkPlan plan_rechunk(const Dims& shape, std::uint64_t itemsize, const Dims& read_chunk,
                         const Dims& object, std::uint64_t limit);

}  // namespace batchfs
