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
  std::vector<std::string> store_options;  // as on the command line: "--anon"
  std::string view;                        // a file's name, or its text, which begins with '{'
  std::optional<std::string> part;         // of its split
  DescriptionOptions description;
  PredictionOptions writing;
};

/// Thread-safe.
class PredictionOutput {
 public:
  /// Throws the errors of opening the store and the view, of describe_predictions() and of
  /// PredictionWriter.
  explicit PredictionOutput(const OutputRequest& request);

  /// `tensor` may be empty if only one is predicted; `strides` null: C order. Throws the errors of
  /// PredictionWriter::write().
  void write(const std::string& tensor, std::span<const std::int64_t> samples, const void* values,
             const DataType& type, const std::int64_t* strides);
  /// This rank's batches with samples that the output lacks, ascending.
  std::vector<std::int64_t> remaining() const;
  /// Throws invalid_argument for a number outside of the epoch.
  std::vector<std::int64_t> batch_samples(std::int64_t batch) const;
  /// The description as JSON: the arrays, and the dimensions that windows move along.
  const Json& description() const { return described_; }
  /// The samples of the epoch, ascending.
  const PredictionSamples& samples() const { return epoch_.samples; }
  /// Shape of the values to write for samples of one batch. `tensor` as for write().
  Dims shape(const std::string& tensor, std::span<const std::int64_t> samples) const;
  /// Whether each sample is in the output.
  std::vector<bool> done() const;
  std::uint64_t missing() const;
  bool finished() const;
  /// Throws stale if a store has changed meanwhile: the output then stays unfinished.
  void close();
  void suspend();

 private:
  using Tensors = std::map<std::string, std::uint32_t>;  // numbers in the view, by name

  /// `name` may be empty if there is only one.
  Tensors::const_iterator tensor_named(const std::string& name) const;
  /// Shape of the values that are passed for these samples: if batches differ, that of the first
  /// sample's batch.
  Dims shape_of(std::uint32_t tensor, std::span<const std::int64_t> samples) const;

  OpenedView opened_;
  std::shared_ptr<const View> view_;  // with its samples
  std::optional<SourceVersions> source_;
  EpochSamples epoch_;
  const std::int64_t epoch_number_, rank_, world_;
  const bool reduces_;
  Tensors tensors_;
  Json described_;
  /// For each row of the samples, a batch that has it; empty if all batches have one shape.
  std::vector<std::int64_t> batch_of_;
  std::unique_ptr<PredictionWriter> writer_;
};

}  // namespace batchfs
