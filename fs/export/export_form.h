#pragma once
// The forms in which the batches of an epoch are exported: their files and the contents of these.
//
//   zarr               one array per tensor, (samples in the epoch's order, ...), a chunk per
//                      batch, in shards of several batches; coordinates along sample; view.json
//   webdataset         tar archives; per sample SSSSSSSSS.TENSOR.npy and SSSSSSSSS.json
//   mds                shards of MosaicML Streaming with ndarray columns, and index.json
//   npz, safetensors   one file per batch, as a mount has it
//
// A unit is a run of batches that makes whole output objects: two units never write to one object.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/pipeline/batch.h"
#include "engine/pipeline/batch_format.h"
#include "engine/store/output/output_store.h"
#include "engine/view/view.h"
#include "engine/write/compression.h"

namespace batchfs {

struct ExportRange {
  std::shared_ptr<const View> view;
  std::int64_t epoch = 0;
  std::int64_t first = 0, end = 0;    // batches
  std::int64_t batches_per_unit = 1;  // of forms with several batches in an object

  std::int64_t units() const { return (end - first + batches_per_unit - 1) / batches_per_unit; }
  std::int64_t unit_begin(std::int64_t unit) const { return first + unit * batches_per_unit; }
  std::int64_t unit_end(std::int64_t unit) const {
    return std::min(end, unit_begin(unit) + batches_per_unit);
  }
  /// Samples before a batch in the epoch: all batches but the last are full.
  std::int64_t samples_before(std::int64_t batch) const { return batch * view->batch_size(); }
  std::int64_t samples_of(std::int64_t batch) const { return view->shapes(batch).at(0)[0]; }
};

/// Makes the objects of one unit. add() is called by one thread, batch by batch; then the items by
/// several.
class ExportUnit {
 public:
  virtual ~ExportUnit() = default;
  virtual void add(std::int64_t batch, std::shared_ptr<const Batch> made) = 0;
  virtual std::size_t items() const { return 1; }
  virtual void write(std::size_t item) = 0;
  virtual std::uint64_t objects() const { return 1; }
};

/// Thread-safe.
class ExportForm {
 public:
  virtual ~ExportForm() = default;
  virtual const BatchFormat& format() const = 0;
  virtual std::unique_ptr<ExportUnit> begin(std::int64_t unit) const = 0;
  /// Key of the object whose presence marks the output as complete.
  virtual std::string last_key() const = 0;
  /// Writes the objects that belong to the whole export, last_key() last. Precondition: all units
  /// are written.
  virtual void finish() const = 0;
};

/// The names of forms, for messages: "zarr, webdataset, mds, safetensors, npz".
extern const char* const kExportForms;
/// Does an object hold several batches?
bool joins_batches(const std::string& name);

/// `range` and `output` outlive the form. Throws not_supported, naming tensor and type, if the form
/// cannot hold the data, or if the form needs equal batches and the view's differ in shape.
std::unique_ptr<ExportForm> make_export_form(const std::string& name, const ExportRange& range,
                                             const Compression& compression, OutputStore& output);

// The single forms, see above.
std::unique_ptr<ExportForm> make_file_form(const BatchFormat& format, const ExportRange& range,
                                           OutputStore& output);
std::unique_ptr<ExportForm> make_zarr_form(const ExportRange& range, const Compression& compression,
                                           OutputStore& output);
std::unique_ptr<ExportForm> make_webdataset_form(const ExportRange& range, OutputStore& output);
std::unique_ptr<ExportForm> make_mds_form(const ExportRange& range, OutputStore& output);

/// Throws not_supported unless all batches but the last have the same shapes, and the last differs
/// in its samples alone.
void check_equal_batches(const ExportRange& range, const std::string& form);

/// Bytes of one sample of each tensor.
std::vector<std::uint64_t> sample_bytes(const ExportRange& range);

/// Key of the file list for forms that have none of their own.
inline constexpr const char* kManifestKey = "_batchfs.json";
/// Head of that list: epoch, batches, samples.
Json manifest_head(const std::string& form, const ExportRange& range);

}  // namespace batchfs
