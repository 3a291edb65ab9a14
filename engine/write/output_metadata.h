#pragma once
// The metadata documents of a finished output, consolidated.

#include <string>
#include <vector>

#include "engine/store/output/output_store.h"
#include "engine/write/output_array.h"
#include "engine/zarr/hierarchy.h"

namespace batchfs {

/// The key whose presence marks an output as complete: the last one that is put.
std::string last_key(int format, bool is_array);

/// Puts all documents, the one that makes the output a Zarr store last. `arrays` are paths in the
/// output; groups of the source below `group` keep their attributes.
void put_metadata(OutputStore& output, int format, const std::vector<const OutputArray*>& arrays,
                  const Hierarchy& source, const std::string& group);

}  // namespace batchfs
