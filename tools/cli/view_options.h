#pragma once
// `--view FILE` of the commands that take one view, and its opening.

#include <functional>
#include <memory>
#include <string>

#include "engine/view/view.h"
#include "tools/cli/store_options.h"

namespace batchfs {

struct OpenedView {
  OpenedStore opened;
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<const View> view;
};

/// May throw for a file that must not be read.
using CheckFile = std::function<void(const std::string& path)>;

/// Reads and resolves a view file. Its name, when the file gives none, is that of the file.
/// `check_file` is asked of each file that the view names.
std::shared_ptr<const View> load_view(const std::shared_ptr<const Dataset>& dataset,
                                      const std::string& file, ViewOptions options = {},
                                      const CheckFile& check_file = {});

/// The same with its store; `-` is standard input.
OpenedView open_view(const StoreOptions& store, const std::string& file,
                     const ViewOptions& options = {});

}  // namespace batchfs
