#pragma once
// batch-….json: the samples of a batch and the chunks that they come from.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/view/describe/provenance_list.h"
#include "engine/view/view.h"

namespace batchfs {

/// The lists of batch-….json but for its chunks, see ProvenanceText. They refer to the view.
std::vector<ProvenanceList> provenance_lists(const View& view, std::int64_t epoch,
                                             std::int64_t batch);
/// A chunk as batch-….json names it; of a source but the first, or of one of several stores, with
/// its name before it.
std::string chunk_label(const View& view, std::uint32_t variable, std::int64_t chunk);

}  // namespace batchfs
