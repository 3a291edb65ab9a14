#pragma once
// `--view FILE` of the commands that take one view, and its opening.

#include <memory>
#include <string>

#include "engine/view/view.h"
#include "tools/store_options.h"

namespace batchfs {

struct OpenedView {
  OpenedStore opened;
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<const View> view;
};

/// Reads and resolves a view file. Its name, when the file gives none, is that of the file.
std::shared_ptr<const View> load_view(const std::shared_ptr<const Dataset>& dataset, const std::string& file,
                                      ViewOptions options = {});

OpenedView open_view(const StoreOptions& store, const std::string& file, const ViewOptions& options = {});

}  // namespace batchfs
