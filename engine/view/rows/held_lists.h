#pragma once
// Memory of the lists that a view of windows keeps.

#include <cstdint>
#include <map>
#include <string>

#include "engine/view/list/sample_list.h"
#include "engine/view/order/order.h"
#include "engine/view/order/source_chunks.h"
#include "engine/view/samples/sample_index.h"
#include "engine/view/spec.h"

namespace batchfs {

/// Fields of a view of windows. Non-owning; pointers may be null.
struct HeldLists {
  const ViewSpec& spec;
  const std::map<std::string, Positions>& selected;  // by dimension
  const WindowGrid& grid;
  const ChunkGroups& groups;
  const SampleIndex* index;
  const SampleIndex* allowed;  // may be the same
  const SampleList* list;
  const SourceChunks* by;
  std::int64_t samples, epoch_samples;
};

/// Bytes, with those of the view's order, which has lists for the epochs that are read.
std::uint64_t held_bytes(const HeldLists& lists);

}  // namespace batchfs
