#pragma once
// view.json: a view with every default filled in.

#include "engine/base/json.h"
#include "engine/view/view.h"

namespace batchfs {

/// A view file that stands for the same view: durations as written, defaults, digests of files, and
/// the numbers of "normalize".
Json resolved_view(const View& view);

}  // namespace batchfs
