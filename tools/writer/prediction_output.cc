#include "tools/writer/prediction_output.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "engine/base/strings.h"
#include "tools/cli/places.h"
#include "tools/cli/samples.h"

namespace batchfs {

namespace {

Error invalid(std::string why) { return Error(ErrorCode::invalid_argument, std::move(why)); }

StoreOptions store_options_of(const OutputRequest& request) {
  StoreOptions options;
  CLI::App app;
  app.set_help_flag();
  add_store_options(app, options);
  add_other_stores(app, options);
  std::vector<std::string> words{"--", request.store};
  words.insert(words.begin(), request.store_options.begin(), request.store_options.end());
  std::reverse(words.begin(), words.end());  // CLI11 takes the first from the end
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    throw invalid(fmt::format("store_options: {}", error.what()));
  }
  return options;
}

OpenedView open(const OutputRequest& request, const StoreOptions& options) {
  const std::size_t first = request.view.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || request.view[first] != '{')
    return open_view(options, request.view, {.part = request.part});
  const StandardInput text{request.view, std::filesystem::current_path(), {}, "the view"};
  return open_view(options, "-", {.part = request.part}, text);
}

Json described(const std::vector<PredictedArray>& arrays, const PredictionSamples& samples) {
  Json result{{"dims", samples.dims}, {"arrays", Json::array()}};
  for (const PredictedArray& array : arrays) {
    Json one{
        {"name", array.name},         {"tensor", array.tensor}, {"tensor_dims", array.tensor_dims},
        {"dtype", array.type.name()}, {"dims", Json::array()},  {"shape", Json::array()}};
    for (const PredictedAxis& axis : array.axes) {
      one["dims"].push_back(axis.name);
      one["shape"].push_back(axis.length);
    }
    result["arrays"].push_back(std::move(one));
  }
  return result;
}

OutputRequest checked(OutputRequest request) {
  if (request.writing.world < 1 || request.writing.rank < 0 ||
      request.writing.rank >= request.writing.world)
    throw invalid(
        fmt::format("rank {} is not below world {}", request.writing.rank, request.writing.world));
  if (request.description.epoch < 0)
    throw invalid(fmt::format("there is no epoch {}; the first is 0", request.description.epoch));
  return request;
}

}  // namespace

PredictionOutput::PredictionOutput(const OutputRequest& request)
    : epoch_number_(checked(request).description.epoch),
      rank_(request.writing.rank),
      world_(request.writing.world),
      reduces_(request.description.reduce) {
  const StoreOptions options = store_options_of(request);
  opened_ = open(request, options);
  check_apart(places_of(opened_.opened), request.writing.output);
  view_ = find_samples(opened_, options);
  PredictionDescription description = describe_predictions(*view_, request.description);
  epoch_ = std::move(description.epoch);
  described_ = described(description.arrays, epoch_.samples);
  bool partial = false;
  for (const PredictedArray& array : description.arrays) {
    for (std::uint32_t t = 0; t < view_->tensors().size(); ++t)
      if (view_->tensors()[t].name == array.tensor) tensors_.emplace(array.tensor, t);
    for (const PredictedAxis& axis : array.axes) partial = partial || axis.partial;
  }
  if (partial) {
    batch_of_.resize(epoch_.samples.size());
    for (std::size_t i = 0; i < epoch_.rows.size(); ++i)
      batch_of_[epoch_.rows[i]] = epoch_.batches[i];
  }
  source_.emplace(source_arrays(*view_), SourceVersions::Options{options.threads});
  PredictionOptions writing = request.writing;
  writing.source = source_->digests();
  writer_ = std::make_unique<PredictionWriter>(std::move(description.arrays), epoch_.samples,
                                               std::move(writing));
}

Dims PredictionOutput::shape_of(std::uint32_t tensor, std::span<const std::int64_t> samples) const {
  Dims shape{static_cast<std::int64_t>(samples.size())};
  if (reduces_) return shape;
  Dims full = view_->tensors()[tensor].shape;
  if (!batch_of_.empty() && !samples.empty()) {
    const auto& numbers = epoch_.samples.numbers;
    const auto row = std::lower_bound(numbers.begin(), numbers.end(), samples[0]);
    if (row != numbers.end() && *row == samples[0])  // otherwise the writer reports it
      full = view_->shapes(batch_of_[static_cast<std::size_t>(row - numbers.begin())])[tensor];
  }
  for (std::size_t d = 1; d < full.size(); ++d) shape.push_back(full[d]);
  return shape;
}

PredictionOutput::Tensors::const_iterator PredictionOutput::tensor_named(
    const std::string& name) const {
  std::vector<std::string> known;
  for (const auto& [other, number] : tensors_) known.push_back(other);
  if (name.empty() && known.size() > 1)
    throw invalid(
        fmt::format("predictions of several tensors are passed by name: {}", join(known, ", ")));
  const auto found = name.empty() ? tensors_.begin() : tensors_.find(name);
  if (found == tensors_.end())
    throw invalid(fmt::format("the output has nothing for the tensor '{}'; it has {}", name,
                              join(known, ", ")));
  return found;
}

void PredictionOutput::write(const std::string& tensor, std::span<const std::int64_t> samples,
                             const void* values, const DataType& type,
                             const std::int64_t* strides) {
  const auto found = tensor_named(tensor);
  const Dims shape = shape_of(found->second, samples);
  const Dims steps =
      strides == nullptr ? c_strides(shape, type.itemsize) : Dims(std::span(strides, shape.size()));
  writer_->write(found->first, samples,
                 {static_cast<const std::byte*>(values), type, shape, steps});
}

Dims PredictionOutput::shape(const std::string& tensor,
                             std::span<const std::int64_t> samples) const {
  return shape_of(tensor_named(tensor)->second, samples);
}

std::vector<std::int64_t> PredictionOutput::remaining() const {
  if (writer_->finished()) return {};
  std::vector<std::int64_t> batches = batches_to_do(epoch_, writer_->done());
  std::erase_if(batches, [&](std::int64_t batch) { return batch % world_ != rank_; });
  return batches;
}

std::vector<std::int64_t> PredictionOutput::batch_samples(std::int64_t batch) const {
  const auto [first, last] = std::equal_range(epoch_.batches.begin(), epoch_.batches.end(), batch);
  if (first == last)
    throw invalid(fmt::format("the view has no batch {} in epoch {}; it has {}", batch,
                              epoch_number_,
                              epoch_.batches.empty() ? 0 : epoch_.batches.back() + 1));
  std::vector<std::int64_t> samples;
  for (auto i = first - epoch_.batches.begin(); i < last - epoch_.batches.begin(); ++i)
    samples.push_back(epoch_.samples.numbers[epoch_.rows[static_cast<std::size_t>(i)]]);
  return samples;
}

std::vector<bool> PredictionOutput::done() const { return writer_->done(); }

std::uint64_t PredictionOutput::missing() const { return writer_->missing(); }

bool PredictionOutput::finished() const { return writer_->finished(); }

void PredictionOutput::close() {
  // The values were made from batches that other processes read.
  if (!writer_->finished()) source_->confirm_all();
  writer_->close();
}

void PredictionOutput::suspend() { writer_->suspend(); }

}  // namespace batchfs
