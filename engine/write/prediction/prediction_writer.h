#pragma once
// Writes a model's output into a Zarr store, at the positions of the samples.
//
// The output is a local folder, which becomes a Zarr store with its last document:
//   .batchfs.json               identifies the run: the same arguments continue it
//   .batchfs/lock-rank-R        held by the process that writes rank R
//   .batchfs/ended-R-of-W       rank R of W was closed
//   .batchfs/parts/A/N/R-P      samples of object N of array A that rank R has, until all are there
//   ARRAY/c/...                 objects (chunks or shards), each put once, whole
//   zarr.json                   put last, by the rank that ends last
//
// An object is encoded once all of its samples are written. Samples of other objects are in memory,
// or, beyond a budget and at the end, in parts: the rank that adds the last sample of an object
// shared by several ranks puts it.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/write/compression.h"
#include "engine/write/prediction/predicted_array.h"

namespace batchfs {

/// Which value an element has where windows overlap.
enum class Overlap : std::uint8_t {
  error,   // none: overlapping windows are refused
  trim,    // that of the window in whose middle it lies
  mean,    // the mean of all windows
  cosine,  // a mean with weights that fall towards a window's edges as sin²
  last,    // that of the sample with the highest number
};

/// "trim", ...; throws invalid_argument, naming all.
Overlap parse_overlap(const std::string& text);
const char* overlap_name(Overlap overlap);

struct PredictionOptions {
  std::string output;  // a folder, or file://
  Overlap overlap = Overlap::error;
  int rank = 0, world = 1;
  /// Elements by the name of an axis; -1: all of them.
  std::map<std::string, std::int64_t> chunks;
  std::map<std::string, std::int64_t> shards;  // whole numbers of chunks
  Compression compression;
  std::uint64_t memory = std::uint64_t{1} << 30;  // bytes of samples that wait for their objects
  int threads = 0;                                // that encode; 0: up to 4
  /// SourceVersions::digests() of the inputs of the predictions.
  Json source = Json::object();
};

/// Values of samples in memory.
struct PredictedValues {
  const std::byte* data = nullptr;  // of the first element
  DataType type;                    // native order; bfloat16, too
  Dims shape;                       // samples first
  Dims strides;                     // in bytes, of any sign
};

/// Thread-safe. Blocking.
class PredictionWriter {
 public:
  /// Begins the output, or continues it. Throws invalid_argument for arrays and options that do not
  /// fit, for an output of another run and for a rank that another process writes; stale for one
  /// that was begun with another source; not_supported; access_denied, io.
  PredictionWriter(std::vector<PredictedArray> arrays, PredictionSamples samples,
                   PredictionOptions options);
  /// Without close(): samples of incomplete objects are kept for the next run, errors are dropped.
  ~PredictionWriter();
  PredictionWriter(const PredictionWriter&) = delete;
  PredictionWriter& operator=(const PredictionWriter&) = delete;

  /// Writes the predictions for the samples of these numbers: copies them before it returns. The
  /// shape is (samples, tensor_shape). Waits while objects wait to be encoded. Throws the error of
  /// an earlier write; invalid_argument.
  void write(const std::string& tensor, std::span<const std::int64_t> samples,
             const PredictedValues& values);

  /// For each sample of the epoch, in order: is it in the output, of all ranks, in all arrays?
  std::vector<bool> done() const;
  /// Samples that are not.
  std::uint64_t missing() const;
  /// Is the output complete: does it open as a Zarr store?
  bool finished() const;

  /// Ends this rank's share; the rank that ends last makes the output a Zarr store. Throws the
  /// error of a write; and, in the rank that ends last, io when samples are missing, with their
  /// number: the same program continues it. Does nothing the second time.
  void close();
  /// Ends this rank's share without finishing the output: written samples are kept for the next
  /// run. Throws the error of a write. Does nothing after close() and the second time.
  void suspend();

 private:
  class State;
  const std::unique_ptr<State> state_;
};

}  // namespace batchfs
