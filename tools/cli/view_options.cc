#include "tools/cli/view_options.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/view/mixed_view.h"

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

/// Resolves the names of files in a view of `folder`.
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
  std::optional<MixSpec> mix;     // of a mixture
  std::vector<ViewSource> mixed;  // its views
};

/// The text of a view that a mixture of this text names or holds.
ViewText text_of(const MixComponent& component, const ViewText& mixture,
                 const CheckFile& check_file, std::uint64_t memory) {
  ViewText text;
  if (component.file.empty()) {
    text = {component.view.dump(-1, ' ', false, Json::error_handler_t::replace), component.name,
            mixture.folder, mixture.where + ", " + component.path + ".view"};
  } else {
    const std::filesystem::path file = mixture.folder / component.file;
    if (check_file) check_file(file);
    try {
      text = read_view_text(file);
      check_view_memory(text, memory);
    } catch (Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", component.path, error.why()), error.where());
    }
  }
  if (is_mixture(text.json, text.where))
    throw Error(
        ErrorCode::not_supported,
        fmt::format("{}: it is a mixture itself; name the views that it mixes", component.path),
        mixture.where);
  return text;
}

ViewSource source_of(GroupDatasets& datasets, ViewText text, const CheckFile& check_file) {
  auto [dataset, level] = datasets.choose(text.json, text.where);
  ReadFile read_file = reader_of(text.folder, check_file);
  FilePath file_path = places_in(text.folder, check_file);
  return {std::move(text),
          std::move(dataset),
          level,
          std::move(read_file),
          std::move(file_path),
          {},
          {}};
}

ViewSource read_view(GroupDatasets& datasets, const std::string& file,
                     const CheckFile& check_file = {},
                     const std::optional<StandardInput>& input = {}) {
  ViewText text = read_view_text(file, input);
  check_view_memory(text, datasets.memory());
  if (input && !input->start.empty())
    text.json = with_mix_start(text.json, input->start, text.where);
  if (!is_mixture(text.json, text.where)) return source_of(datasets, std::move(text), check_file);
  ViewSource source;
  source.mix = parse_mix_spec(text.json, text.name, text.where);
  for (const MixComponent& component : source.mix->components)
    source.mixed.push_back(source_of(datasets.of_store(component.store, component.path + ".store"),
                                     text_of(component, text, check_file, datasets.memory()),
                                     check_file));
  source.dataset = source.mixed.front().dataset;
  source.text = std::move(text);
  return source;
}

std::shared_ptr<const View> parse(const ViewSource& source, ViewOptions options) {
  options.read_file = source.read_file;
  options.file_path = source.file_path;
  options.level = source.level;
  return View::parse(source.dataset, source.text.json, source.text.name, source.text.where,
                     options);
}

/// Throws if view number `i` of a mixture has a split and the mixture names no part of it.
void check_part(const ViewSource& source, std::size_t i) {
  const MixComponent& component = source.mix->components[i];
  const ViewText& text = source.mixed[i].text;
  if (!component.part && !split_names(text.json, text.where).empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: the view has a \"split\": write \"part\": \"{}\"", component.path,
                            split_names(text.json, text.where).front()),
                source.text.where);
}

std::shared_ptr<const View> parse_mixture(const ViewSource& source, const ViewOptions& options) {
  const MixSpec& mix = *source.mix;
  if (options.part)
    throw Error(ErrorCode::invalid_argument,
                "--part: a mixture is not split; write the \"part\" of each view in \"mix\"",
                source.text.where);
  std::vector<std::shared_ptr<const View>> views;
  for (std::size_t i = 0; i < mix.components.size(); ++i) {
    check_part(source, i);
    views.push_back(parse(source.mixed[i], {.part = mix.components[i].part,
                                            .mixed = MixedIn{mix.view.batch_size, mix.view.formats,
                                                             mix.components[i].name}}));
  }
  try {
    return make_mixed_view(mix, std::move(views));
  } catch (Error& error) {
    throw error.at(source.text.where);
  }
}

/// The one view of a source, or the part of it that the options name.
std::shared_ptr<const View> parse_one(const ViewSource& source, const ViewOptions& options) {
  return source.mix ? parse_mixture(source, options) : parse(source, options);
}

std::vector<std::shared_ptr<const View>> parse_parts(const ViewSource& source) {
  if (source.mix) return {parse_mixture(source, {})};
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

DecodedViews open_decoded(const StoreOptions& store, const std::string& file,
                          const std::optional<std::string>& part) {
  DecodedViews result;
  result.opened = open_zarr(store);
  GroupDatasets datasets(result.opened);
  const ViewSource source = read_view(datasets, file);
  if (!source.mix) {
    auto view = parse(source, {.as_decoded = true, .part = part, .first_part = true});
    result.views.push_back({view->name(), std::move(view)});
    return result;
  }
  result.is_mixture = true;
  if (part) parse_mixture(source, {.part = part});  // throws
  for (std::size_t i = 0; i < source.mixed.size(); ++i) {
    check_part(source, i);
    const MixComponent& component = source.mix->components[i];
    result.views.push_back(
        {component.name, parse(source.mixed[i], {.as_decoded = true, .part = component.part})});
  }
  return result;
}

OpenedView open_view(const StoreOptions& store, const std::string& file, const ViewOptions& options,
                     const std::optional<StandardInput>& input) {
  OpenedView result;
  result.opened = open_zarr(store);
  GroupDatasets datasets(result.opened);
  result.view = parse_one(read_view(datasets, file, {}, input), options);
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
    result.views.push_back(parse_one(source, {.part = part}));
  else
    result.views = parse_parts(source);
  return result;
}

}  // namespace batchfs
