#pragma once
// Where the windows of a view's samples begin: by all keys of "samples" and by the split together.

#include "engine/view/samples/missing.h"
#include "engine/view/samples/start_table.h"

namespace batchfs {

/// Over the starts of the view's grid along each window dimension. Samples that "missing" leaves out
/// are in it, those of a weight of 0 are not. Throws no_memory, as check_list() does.
StartTable sample_starts(const ViewScan& scan, const Dataset& dataset);

}  // namespace batchfs
