#include "engine/view/list/listed_samples.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/dataset/converter.h"
#include "engine/view/list/list_reader.h"
#include "engine/view/list/npy_reader.h"
#include "engine/view/list/restricted_list.h"
#include "engine/view/samples/window_values.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

/// The column of labels as elements of the tensor.
std::shared_ptr<const std::vector<std::byte>> values_of(const ListColumn& column,
                                                        const DataType& type) {
  std::vector<std::byte> values(column.size() * type.itemsize);
  CfDecoding as_is;
  as_is.stored = as_is.decoded = as_is.arithmetic =
      column.whole ? make_type(Kind::signed_int, 8) : float64();
  const auto* from = column.whole ? reinterpret_cast<const std::byte*>(column.integers.data())
                                  : reinterpret_cast<const std::byte*>(column.floats.data());
  const Dims shape{static_cast<std::int64_t>(column.size())};
  Converter(as_is, type)
      .convert(shape, from, c_strides(shape, 8), values.data(), c_strides(shape, type.itemsize));
  return std::make_shared<const std::vector<std::byte>>(std::move(values));
}

}  // namespace

std::shared_ptr<const SampleList> listed_samples(ViewSpec& spec, const ListingView& view) {
  ListSpec& list = *spec.list;
  ListedView listed{view.dataset, view.selected, {}, list.labels};
  for (std::size_t w = 0; w < view.windows.size(); ++w)
    listed.rules.emplace_back(view.windows[w], view.selected.at(view.windows[w].name).size(),
                              view.offsets[w], view.reaches[w], list.center);
  if (spec.weights && spec.weights->column &&
      std::none_of(list.labels.begin(), list.labels.end(),
                   [&](const auto& label) { return label.first == *spec.weights->column; }))
    listed.columns.emplace_back(*spec.weights->column, spec.weights->path + ".column");
  std::shared_ptr<const SampleList> rows = read_list(list, listed);
  list.file.digest = rows->digest();
  return rows;
}

WindowGrid grid_of(const SampleList& list) {
  constexpr std::int64_t kMaxMarked = INT64_C(1) << 27;  // 16 MiB of bits
  const Dims& lengths = list.lengths();
  std::vector<std::vector<bool>> seen(lengths.size());
  for (std::size_t w = 0; w < lengths.size(); ++w)
    if (lengths[w] <= kMaxMarked) seen[w].resize(static_cast<std::size_t>(lengths[w]));
  Dims starts(lengths.size());
  for (std::int64_t row = 0; row < list.rows(); ++row) {
    list.starts(row, starts.begin());
    for (std::size_t w = 0; w < starts.size(); ++w)
      if (!seen[w].empty()) seen[w][static_cast<std::size_t>(starts[w])] = true;
  }
  WindowGrid grid;
  for (std::size_t w = 0; w < lengths.size(); ++w) {
    grid.first.push_back(0);
    grid.strides.push_back(1);
    grid.counts.push_back(lengths[w]);
    grid.allowed.emplace_back();
    if (seen[w].empty()) continue;
    auto found = std::make_shared<std::vector<std::int64_t>>();
    for (std::size_t at = 0; at < seen[w].size(); ++at)
      if (seen[w][at]) found->push_back(static_cast<std::int64_t>(at));
    grid.counts.back() = static_cast<std::int64_t>(found->size());
    grid.allowed.back() = std::move(found);
  }
  return grid;
}

std::vector<TensorSpec> label_tensors(const ViewSpec& spec, const SampleList& list) {
  std::vector<TensorSpec> tensors;
  for (const auto& [name, path] : spec.list->labels) {
    const ListColumn& column = *list.column(name);
    TensorSpec tensor;
    tensor.name = name;
    tensor.type = column.whole ? make_type(Kind::signed_int, 8)
                  : spec.dtype ? *spec.dtype
                               : float64();
    tensor.dims = {"sample"};
    tensor.shape = {spec.batch_size};
    tensor.values = values_of(column, tensor.type);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::vector<std::string> list_warnings(const ViewSpec& spec) {
  std::vector<std::string> warnings;
  for (const WindowSpec& window : spec.window)
    if (window.has_stride || window.every)
      warnings.push_back(
          fmt::format("window.{}.{} is ignored: \"list\" says where the windows begin", window.dim,
                      window.every ? "every" : "stride"));
  return warnings;
}

namespace {

/// The weights of listed samples: the file has a number for each of `samples`, or for each row, of
/// which `kept` are samples.
std::vector<double> row_weights(FileSpec& file, std::int64_t samples,
                                const std::vector<bool>& kept) {
  NamedFile npy(file.place);
  const auto rows = static_cast<std::int64_t>(kept.size());
  if (rows == 0 || read_npy_header(npy).elements() != rows) return read_weights(file, samples);
  std::vector<double> numbers = read_weights(file, rows);
  std::size_t next = 0;
  for (std::size_t row = 0; row < kept.size(); ++row)
    if (kept[row]) numbers[next++] = numbers[row];
  numbers.resize(next);
  numbers.shrink_to_fit();
  return numbers;
}

}  // namespace

std::shared_ptr<const Draws> sample_draws(
    ViewSpec& spec, const ListingView& view, const RestrictedList* listed, std::int64_t samples,
    const std::function<void(std::int64_t sample, std::int64_t* starts)>& starts_of) {
  constexpr std::int64_t kMaxSamples = INT64_C(1) << 27;  // 1 GiB of sums
  WeightsSpec& weights = *spec.weights;
  if (samples > kMaxSamples)
    throw Error(ErrorCode::not_supported,
                fmt::format("{}: weights are for at most {}; there are {}", weights.path,
                            counted(kMaxSamples, "sample"), counted(samples, "sample")));
  check_list(view.dataset, static_cast<std::uint64_t>(samples) * sizeof(double), weights.path,
             "the weights");
  std::vector<double> numbers;
  if (weights.column) {
    const ListColumn& column = *listed->list->column(*weights.column);
    numbers.resize(column.size());
    for (std::size_t row = 0; row < numbers.size(); ++row) numbers[row] = column.number(row);
  } else if (weights.variable) {
    const WindowValues values = read_window_values(
        view.dataset, *weights.variable, weights.path + ".variable", view.windows, view.selected);
    numbers.resize(static_cast<std::size_t>(samples));
    Dims starts(view.windows.size());
    for (std::int64_t s = 0; s < samples; ++s) {
      starts_of(s, starts.begin());
      std::int64_t place = 0;
      for (std::size_t a = 0; a < values.axes.size(); ++a)
        place += values.offset(a, starts[values.axes[a].window]);
      numbers[static_cast<std::size_t>(s)] = static_cast<double>(values.at(place));
    }
  } else {
    if (listed == nullptr && spec.missing == ViewSpec::Missing::skip)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: a file cannot know which samples \"missing\": \"skip\" leaves; "
                              "name a \"variable\", or leave one of them out",
                              weights.path));
    numbers = listed != nullptr ? row_weights(weights.file, samples, listed->kept)
                                : read_weights(weights.file, samples);
  }
  return std::make_shared<const Draws>(std::move(numbers), weights.path);
}

}  // namespace batchfs
