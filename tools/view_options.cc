#include "tools/view_options.h"

#include <filesystem>

namespace batchfs {

std::shared_ptr<const View> load_view(const std::shared_ptr<const Dataset>& dataset, const std::string& file,
                                      ViewOptions options) {
  const std::filesystem::path path(file);
  options.read_file = [&path](const std::string& name) { return read_text_file(path.parent_path() / name); };
  return View::parse(dataset, read_text_file(file), path.stem().string(), file, options);
}

OpenedView open_view(const StoreOptions& store, const std::string& file, const ViewOptions& options) {
  OpenedView result;
  result.opened = open_zarr(store);
  result.dataset = std::make_shared<const Dataset>(result.opened.store, *result.opened.hierarchy);
  result.view = load_view(result.dataset, file, options);
  return result;
}

}  // namespace batchfs
