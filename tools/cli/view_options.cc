#include "tools/cli/view_options.h"

#include <cstdio>
#include <filesystem>
#include <utility>

namespace batchfs {

namespace {

/// Reads the files that a view of `folder` names.
auto reader_of(std::filesystem::path folder, const CheckFile& check_file) {
  return [folder = std::move(folder), check_file](const std::string& name) {
    const std::filesystem::path named = folder / name;
    if (check_file) check_file(named);
    return read_text_file(named, "the statistics file");
  };
}

}  // namespace

std::shared_ptr<const View> load_view(const std::shared_ptr<const Dataset>& dataset,
                                      const std::string& file, ViewOptions options,
                                      const CheckFile& check_file) {
  const std::filesystem::path path(file);
  options.read_file = reader_of(path.parent_path(), check_file);
  const std::string what = "the view file";
  return View::parse(dataset, read_text_file(file, what), path.stem().string(),
                     what + " '" + file + "'", options);
}

OpenedView open_view(const StoreOptions& store, const std::string& file,
                     const ViewOptions& options) {
  OpenedView result;
  result.opened = open_zarr(store);
  result.dataset = std::make_shared<const Dataset>(result.opened.store, *result.opened.hierarchy);
  if (file != "-") {
    result.view = load_view(result.dataset, file, options);
    return result;
  }
  ViewOptions reading = options;
  reading.read_file = reader_of({}, {});
  const std::string where = "standard input";
  result.view = View::parse(result.dataset, read_text(stdin, where), "view", where, reading);
  return result;
}

}  // namespace batchfs
