#pragma once
// The kinds of views.

#include <memory>

#include "engine/view/spec.h"
#include "engine/view/view.h"

namespace batchfs {

std::shared_ptr<const View> make_window_view(std::shared_ptr<const Dataset> dataset, ViewSpec spec);
std::shared_ptr<const View> make_xbatcher_view(std::shared_ptr<const Dataset> dataset,
                                               ViewSpec spec);

}  // namespace batchfs
