#pragma once
// The samples of views that skip missing values: from the cache, or by a scan with a progress bar.

#include <memory>

#include "engine/pipeline/engine.h"
#include "tools/cli/view_options.h"

namespace batchfs {

/// The view with its samples; views that skip nothing as they are.
std::shared_ptr<const View> find_samples(const std::shared_ptr<const View>& view,
                                         const OpenedStore& opened, const StoreOptions& options,
                                         Engine& engine, Log& log);

/// The same with an engine and threads of its own, for processes that read nothing else.
std::shared_ptr<const View> find_samples(const OpenedView& opened, const StoreOptions& options);

/// The same for estimates: reads no values. Null if only a scan could find the samples.
std::shared_ptr<const View> known_samples(const std::shared_ptr<const View>& view,
                                          const OpenedStore& opened, const StoreOptions& options);

}  // namespace batchfs
