// Views by windows: samples are the positions of a window that slides over the selection.

#include <algorithm>

#include <fmt/format.h>

#include "engine/view/describe/batch_coordinates.h"
#include "engine/view/list/listed_samples.h"
#include "engine/view/reached_numbers.h"
#include "engine/view/rows/sample_set.h"
#include "engine/view/rows/window_rows.h"
#include "engine/view/samples/time_windows.h"
#include "engine/view/tensors/tensor_builder.h"
#include "engine/view/tensors/tensor_definitions.h"
#include "engine/view/view_kinds.h"
#include "engine/view/window_checks.h"

namespace batchfs {

namespace {

/// Makes the windows of the view those of its axes, and their durations steps.
void define_windows(const Dataset& dataset, ViewSpec& spec, ViewAxes& axes, TimeStepsByDim& times) {
  for (WindowSpec& window : spec.window) {
    try {
      dataset.dim_size(window.dim);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("window.{}: {}", window.dim, error.why()));
    }
    if (axes.along(window.dim).drops_dim())
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("window.{}: \"select\" takes one position of it, which drops the dimension",
                      window.dim));
    if (window.wrap) check_circle(dataset, window.dim, axes.along(window.dim));
    resolve_durations(window, spec.samples, times);
    axes.windows.push_back(
        {window.dim, window.size, window.wrap, window.edge != WindowSpec::Edge::drop});
  }
}

/// The tensors of the view, or one for each of its variables.
std::vector<TensorDefinition> define_tensors(const Dataset& dataset, const ViewSpec& spec,
                                             const ViewAxes& axes, TimeStepsByDim& times) {
  std::vector<TensorDefinition> definitions = spec.tensors;
  if (definitions.empty()) {
    std::vector<std::string> dims;
    for (const WindowDim& window : axes.windows) dims.push_back(window.name);
    definitions =
        definitions_of(spec.variables ? *spec.variables : default_variables(dataset, spec, dims));
  } else if (spec.variables) {
    // The tensors name the variables used; an unknown name here is still an error.
    for (std::size_t i = 0; i < spec.variables->size(); ++i)
      find_variable(dataset, (*spec.variables)[i], fmt::format("variables[{}]", i));
  }
  for (TensorDefinition& tensor : definitions) {
    check_tensor_name(spec, tensor.name, tensor.path);
    resolve_tensor_offsets(tensor, axes.windows, dataset, spec.split, times);
  }
  return definitions;
}

void add_labels(const ViewSpec& spec, const SampleList& list, TensorBuilder& builder) {
  for (TensorSpec& tensor : label_tensors(spec, list)) {
    for (const auto& [name, path] : spec.list->labels)
      if (name == tensor.name) check_tensor_name(spec, name, path);
    builder.add_values(std::move(tensor));
  }
}

/// The tensors with the labels of fewer rows of the list.
std::shared_ptr<const TensorSet> with_labels(const TensorSet& set, const ViewSpec& spec,
                                             const SampleList& list) {
  auto changed = std::make_shared<TensorSet>(set);
  for (TensorSpec& label : label_tensors(spec, list))
    for (TensorSpec& tensor : changed->specs)
      if (tensor.name == label.name) tensor.values = std::move(label.values);
  return changed;
}

/// The view with other samples or another order: `spec` is completed. `draws`: of the same samples.
std::shared_ptr<const View> with_rows(const View& view, ViewSpec spec, SampleOrder::Inputs values,
                                      std::shared_ptr<const Draws> draws) {
  auto order = std::make_shared<const SampleOrder>(values, spec, std::move(draws));
  auto completed = std::make_shared<const ViewSpec>(std::move(spec));
  ViewParts parts = view.parts();
  parts.spec = completed;
  parts.tensors = values.tensors;
  parts.rows = std::make_shared<const WindowRows>(completed, values, std::move(order));
  return std::make_shared<const View>(std::move(parts));
}

}  // namespace

std::shared_ptr<const View> make_window_view(std::shared_ptr<const Dataset> dataset,
                                             ViewSpec spec) {
  auto axes = std::make_shared<ViewAxes>(*dataset, spec.select);
  TimeStepsByDim times(*dataset, axes->selected);
  define_windows(*dataset, spec, *axes, times);
  std::vector<TensorDefinition> definitions = define_tensors(*dataset, spec, *axes, times);
  auto samples =
      std::make_shared<const SampleSet>(choose_samples(*dataset, *axes, spec, definitions, times));
  check_batches(spec, samples->samples);
  TensorBuilder builder(*dataset, spec, *axes);
  for (TensorDefinition& definition : definitions) builder.add_tensor(std::move(definition));
  if (samples->listed != nullptr) add_labels(spec, *samples->list(), builder);
  check_zarr_names(spec.formats, builder.set().specs);
  builder.add_combinations();
  builder.check_normalized_names();
  auto tensors = std::make_shared<const TensorSet>(builder.take());
  const SampleOrder::Inputs values{dataset, axes, tensors, std::move(samples)};
  auto order = std::make_shared<const SampleOrder>(values, spec);
  auto completed = std::make_shared<const ViewSpec>(std::move(spec));
  auto rows = std::make_shared<const WindowRows>(completed, values, std::move(order));
  auto coordinates = std::make_shared<const std::vector<ViewCoordinate>>(
      collect_coordinates(*dataset, *axes, *tensors));
  auto view = std::make_shared<const View>(ViewParts{std::move(dataset), std::move(completed),
                                                     std::move(axes), std::move(tensors),
                                                     std::move(coordinates), std::move(rows)});
  check_numbers(*view);
  return view;
}

std::shared_ptr<const View> with_samples(const View& view,
                                         std::shared_ptr<const SampleIndex> index) {
  if (view.mixture() != nullptr) {
    if (index != nullptr)
      throw Error(ErrorCode::internal, "a mixture has the samples of its components");
    std::vector<std::shared_ptr<const View>> components = view.components();
    for (auto& component : components)
      if (component->needs_scan()) component = with_samples(*component, nullptr);
    return with_components(view, std::move(components));
  }
  if (view.windows() == nullptr) throw Error(ErrorCode::internal, "this view skips nothing");
  SampleOrder::Inputs values = view.windows()->values();
  const bool is_known = index != nullptr;
  values.samples =
      std::make_shared<const SampleSet>(values.samples->scanned_by(std::move(index), view.spec()));
  if (is_known && values.samples->listed != nullptr)
    values.tensors = with_labels(*values.tensors, view.spec(), *values.samples->list());
  return with_rows(view, view.spec(), std::move(values),
                   is_known ? nullptr : view.windows()->sample_order().draws());
}

std::shared_ptr<const View> with_order(const View& view, const Order& order) {
  ViewSpec spec = view.spec();
  spec.order = order;
  return with_rows(view, std::move(spec), view.windows()->values(),
                   view.windows()->sample_order().draws());
}

ViewScan scan_of(const View& view) {
  const SampleSet& set = view.windows()->set();
  const TensorSet& tensors = view.tensor_set();
  return {.windows = set.windows_to_scan(),
          .grid = set.grid,
          .chosen = set.allowed,
          .list = set.listed != nullptr ? set.listed->list : nullptr,
          .draws = view.windows()->sample_order().draws(),
          .placements = &tensors.scanned,
          .checked = view.spec().skip.names.empty() ? nullptr : &tensors.checked,
          .made = &tensors.made_placements,
          .coarsened = &tensors.coarsened_placements,
          .at_most = view.spec().skip.at_most};
}

void visit_windows(const View& view,
                   const std::function<void(const RestrictedView&, const ViewScan&)>& use) {
  TimeStepsByDim times(*view.dataset(), view.axes().selected);
  use(view.windows()->set().restricted(*view.dataset(), view.spec(), view.axes(), times),
      scan_of(view));
}

}  // namespace batchfs
