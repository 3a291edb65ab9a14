#include "tools/cli/view_options.h"

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

/// Where the files lie that a view of `folder` names.
FilePath places_in(std::filesystem::path folder, const CheckFile& check_file) {
  return [folder = std::move(folder), check_file](const std::string& name) {
    const std::filesystem::path named = folder / name;
    if (check_file) check_file(named);
    return named.string();
  };
}

/// A view's text, and the dataset that it is of.
struct ViewSource {
  ViewText text;
  std::shared_ptr<const Dataset> dataset;
  std::optional<std::int64_t> level;
  ReadFile read_file;  // of the files that it names
  FilePath file_path;
};

ViewSource read_view(GroupDatasets& datasets, const std::string& file,
                     const CheckFile& check_file = {},
                     const std::optional<StandardInput>& input = {}) {
  ViewText text = read_view_text(file, input);
  auto [dataset, level] = datasets.choose(text.json, text.where);
  ReadFile read_file = reader_of(text.folder, check_file);
  FilePath file_path = places_in(text.folder, check_file);
  return {std::move(text), std::move(dataset), level, std::move(read_file), std::move(file_path)};
}

std::shared_ptr<const View> parse(const ViewSource& source, ViewOptions options) {
  options.read_file = source.read_file;
  options.file_path = source.file_path;
  options.level = source.level;
  return View::parse(source.dataset, source.text.json, source.text.name, source.text.where,
                     options);
}

std::vector<std::shared_ptr<const View>> parse_parts(const ViewSource& source) {
  const std::vector<std::string> parts = split_names(source.text.json, source.text.where);
  if (parts.empty()) return {parse(source, {})};
  std::vector<std::shared_ptr<const View>> views;
  for (const std::string& part : parts) views.push_back(parse(source, {.part = part}));
  return views;
}

}  // namespace

void add_part_option(CLI::App& app, std::optional<std::string>& part) {
  app.add_option("--part", part, "the part of a view with \"split\", as train or fold-0-val")
      ->type_name("NAME");
}

std::vector<std::shared_ptr<const View>> load_parts(GroupDatasets& datasets,
                                                    const std::string& file,
                                                    const CheckFile& check_file,
                                                    const std::optional<StandardInput>& input) {
  return parse_parts(read_view(datasets, file, check_file, input));
}

OpenedView open_view(const StoreOptions& store, const std::string& file,
                     const ViewOptions& options) {
  OpenedView result;
  result.opened = open_zarr(store);
  GroupDatasets datasets(result.opened);
  result.view = parse(read_view(datasets, file), options);
  result.dataset = result.view->dataset();
  return result;
}

OpenedViews open_parts(const StoreOptions& store, const std::string& file,
                       const std::optional<std::string>& part) {
  OpenedViews result;
  result.opened = open_zarr(store);
  GroupDatasets datasets(result.opened);
  const ViewSource source = read_view(datasets, file);
  result.dataset = source.dataset;
  if (part)
    result.views.push_back(parse(source, {.part = part}));
  else
    result.views = parse_parts(source);
  return result;
}

}  // namespace batchfs
