#pragma once
// An output for predictions of a view of a store: opens both, describes the arrays, and writes.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/scan/source_versions.h"
#include "engine/write/prediction/describe_predictions.h"
#include "engine/write/prediction/prediction_writer.h"
#include "tools/cli/store_options.h"
#include "tools/cli/view_options.h"

namespace batchfs {

struct OutputRequest {
  std::string store;
  std::vector<std::string> store_options;  // of the command line: "--anon"
  std::string view;                        // a file's name, or its text, which begins with '{'
  std::optional<std::string> part;         // of its split
  DescriptionOptions description;
  PredictionOptions writing;
};

/// Thread-safe.
class PredictionOutput {
 public:
  /// Throws what opening the store and the view does, describe_predictions() and PredictionWriter.
  explicit PredictionOutput(const OutputRequest& request);

  /// `tensor` may be empty where one is predicted; `strides` null: C order. Throws as
  /// PredictionWriter::write().
  void write(const std::string& tensor, std::span<const std::int64_t> samples, const void* values,
             const DataType& type, const std::int64_t* strides);
  /// This rank's batches with samples that the output lacks, ascending.
  std::vector<std::int64_t> remaining() const;
  /// Throws invalid_argument for a number that the epoch does not have.
  std::vector<std::int64_t> batch_samples(std::int64_t batch) const;
  /// As JSON: the arrays, and the dimensions that windows move along.
  const Json& description() const { return described_; }
  /// Those of the epoch, ascending.
  const PredictionSamples& samples() const { return epoch_.samples; }
  /// Of what is written for samples of one batch. `tensor` as for write().
  Dims shape(const std::string& tensor, std::span<const std::int64_t> samples) const;
  /// Of each sample: is it in the output?
  std::vector<bool> done() const;
  std::uint64_t missing() const;
  bool finished() const;
  /// Throws stale when a store has changed meanwhile: then the output is not finished.
  void close();
  void suspend();

 private:
  using Tensors = std::map<std::string, std::uint32_t>;  // numbers in the view, by name

  /// `name` may be empty where there is one.
  Tensors::const_iterator tensor_named(const std::string& name) const;
  /// Of the values that are passed for these samples: where batches differ, that of the batch of
  /// the first one.
  Dims shape_of(std::uint32_t tensor, std::span<const std::int64_t> samples) const;

  OpenedView opened_;
  std::shared_ptr<const View> view_;  // with its samples
  std::optional<SourceVersions> source_;
  EpochSamples epoch_;
  const std::int64_t epoch_number_, rank_, world_;
  const bool reduces_;
  Tensors tensors_;
  Json described_;
  /// Of each row of the samples, a batch that has it; empty where all batches have one shape.
  std::vector<std::int64_t> batch_of_;
  std::unique_ptr<PredictionWriter> writer_;
};

}  // namespace batchfs
