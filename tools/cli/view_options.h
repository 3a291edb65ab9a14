#pragma once
// `--view FILE` of the commands that take one view, and its opening.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/view/spec.h"
#include "engine/view/view.h"
#include "tools/cli/groups.h"
#include "tools/cli/store_options.h"
#include "tools/cli/view_text.h"

namespace batchfs {

struct OpenedView {
  OpenedStore opened;
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<const View> view;
};

/// May throw for a file that must not be read.
using CheckFile = std::function<void(const std::string& path)>;

/// `--part NAME`, for a view with "split".
void add_part_option(CLI::App& app, std::optional<std::string>& part);

/// Reads and resolves a view, see read_view_text(): one view, or those of the parts of its split.
/// If the file has no name for it, the view gets the name of the file. Calls `check_file` for each
/// file that the view names.
std::vector<std::shared_ptr<const View>> load_parts(GroupDatasets& datasets,
                                                    const std::string& file,
                                                    const CheckFile& check_file = {},
                                                    const std::optional<StandardInput>& input = {});

/// The views of a file and its store, as load_parts().
struct OpenedViews {
  OpenedStore opened;
  std::shared_ptr<const Dataset> dataset;
  std::vector<std::shared_ptr<const View>> views;
};
/// With `part` only that one.
OpenedViews open_parts(const StoreOptions& store, const std::string& file,
                       const std::optional<std::string>& part = {});

/// The views of a file as they are decoded, for scans: the one view, or those that a mixture mixes.
struct DecodedViews {
  OpenedStore opened;
  bool is_mixture = false;
  struct Named {
    std::string name;  // of the view of a mixture, in it; else the view's
    std::shared_ptr<const View> view;
  };
  std::vector<Named> views;
};
/// `part`: of the split of a view that is not a mixture.
DecodedViews open_decoded(const StoreOptions& store, const std::string& file,
                          const std::optional<std::string>& part = {});

/// The same for the one view in `options`.
OpenedView open_view(const StoreOptions& store, const std::string& file,
                     const ViewOptions& options = {},
                     const std::optional<StandardInput>& input = {});

}  // namespace batchfs
