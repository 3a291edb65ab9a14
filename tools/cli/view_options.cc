#include "tools/cli/view_options.h"

#include <filesystem>

namespace batchfs {

std::shared_ptr<const View> load_view(const std::shared_ptr<const Dataset>& dataset,
                                      const std::string& file, ViewOptions options,
                                      const CheckFile& check_file) {
  const std::filesystem::path path(file);
  options.read_file = [&](const std::string& name) {
    const std::filesystem::path named = path.parent_path() / name;
    if (check_file) check_file(named);
    return read_text_file(named, "the statistics file");
  };
  const std::string what = "the view file";
  return View::parse(dataset, read_text_file(file, what), path.stem().string(),
                     what + " '" + file + "'", options);
}

OpenedView open_view(const StoreOptions& store, const std::string& file,
                     const ViewOptions& options) {
  OpenedView result;
  result.opened = open_zarr(store);
  result.dataset = std::make_shared<const Dataset>(result.opened.store, *result.opened.hierarchy);
  result.view = load_view(result.dataset, file, options);
  return result;
}

}  // namespace batchfs
