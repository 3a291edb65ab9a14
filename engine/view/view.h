#pragma once
// A view: which batches there are. Parsed and checked against a dataset, immutable, thread-safe;
// nothing in it grows with the number of samples.
//
// File format: batchfs-view(5).

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset/converter.h"
#include "engine/dataset/dataset.h"
#include "engine/dataset/selection.h"
#include "engine/view/spec.h"

namespace batchfs {

struct TensorSpec {
  std::string name;
  DataType type;
  std::vector<std::string> dims;    // "sample" first (xbatcher views: as xbatcher names them)
  Dims shape;                       // of a full batch
  std::array<std::byte, 16> pad{};  // an element of what is outside the selection
  int stack_axis = -1;              // the axis that "stack" made, of dims
  std::vector<std::string>
      channels;  // what lies along it: "t2m", "temperature_500"; empty when there are too many
};

/// One box of one chunk and where its elements go.
struct Part {
  std::uint32_t tensor = 0;
  Box source;               // chunk coordinates
  std::int64_t offset = 0;  // bytes from the tensor's start
  Dims strides;             // bytes in the tensor, one per array dimension
};

/// Elements that lie outside the selection: they are the tensor's `pad`.
struct Padding {
  std::uint32_t tensor = 0;
  std::int64_t offset = 0;  // bytes from the tensor's start
  Dims shape;
  Dims strides;  // bytes in the tensor
};

/// Everything a batch takes from one chunk.
struct ChunkUse {
  std::uint32_t variable = 0;                    // index into View::variables()
  std::int64_t chunk = 0;                        // linear number in the array's grid
  std::uint32_t first_part = 0, part_count = 0;  // in BatchPlan::parts
};

struct BatchPlan {
  std::vector<std::int64_t> samples;  // sample numbers in row order
  std::vector<Dims> shapes;           // of each tensor in this batch
  std::vector<ChunkUse> chunks;  // each (variable, chunk) once, in the order they are first needed
  std::vector<Part> parts;
  std::vector<Padding> paddings;
};

class SampleIndex;
struct ViewScan;

class View {
 public:
  /// Parses and resolves. `name` is used when the file has none. Throws invalid_argument or
  /// not_found with the JSON path and the nearest valid name.
  static std::shared_ptr<const View> parse(std::shared_ptr<const Dataset> dataset,
                                           const std::string& json, const std::string& name,
                                           const std::string& where,
                                           const ViewOptions& options = {});
  virtual ~View() = default;

  virtual const std::string& name() const = 0;
  virtual const std::vector<TensorSpec>& tensors() const = 0;
  virtual const std::vector<std::string>& formats() const = 0;
  virtual std::int64_t samples() const = 0;
  virtual std::int64_t batch_size() const = 0;
  /// Global batches in an epoch.
  virtual std::int64_t batches() const = 0;
  /// Batches of a rank; with remainder "pad" the same for each, the last may repeat samples.
  virtual std::int64_t rank_batches(std::int64_t rank, std::int64_t world) const = 0;
  virtual std::int64_t epochs() const = 0;

  /// Windows with missing values are no samples ("missing": "skip"), and which those are is not
  /// known yet: until with_samples() says so, samples() counts every window and there are no plans.
  virtual bool needs_scan() const = 0;
  /// What scan_samples() needs of a view that skips missing values.
  virtual ViewScan scan() const = 0;
  /// This view with its samples; null: every window is one, as for estimates. Throws when there are
  /// none.
  virtual std::shared_ptr<const View> with_samples(
      std::shared_ptr<const SampleIndex> index) const = 0;

  /// How samples are ordered; null where that is not the view's to say (xbatcher).
  virtual const Order* order() const = 0;
  /// This view in another order, with the same samples; a block order's window of 0 stands for the
  /// default. Views whose order() is null have no other.
  virtual std::shared_ptr<const View> with_order(const Order& order) const = 0;
  /// Samples that the order mixes with each other: all, those of a run of groups, or one.
  virtual std::int64_t mixed_samples() const = 0;
  /// Where the windows of a batch's samples begin: positions of the selection, per window
  /// dimension.
  virtual std::vector<Dims> window_starts(std::int64_t epoch, std::int64_t batch) const = 0;

  /// What the view selects along a dimension of the dataset.
  virtual const Positions& selected(const std::string& dim) const = 0;

  /// Variables the parts come from, and how each is converted for each tensor it is in.
  virtual const std::vector<const Variable*>& variables() const = 0;
  virtual const Converter& converter(std::uint32_t tensor, std::uint32_t variable) const = 0;
  /// All of them, by tensor and variable. Tensors that take the same of a variable share one.
  using Converters =
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::shared_ptr<const Converter>>;
  virtual const Converters& converters() const = 0;

  /// Tensor shapes of a global batch (short at the end, with "keep"). Costs nothing.
  virtual std::vector<Dims> shapes(std::int64_t batch) const = 0;

  /// The plan of a global batch. A pure function of the view and its arguments. Batches past
  /// batches() exist for padded ranks only (remainder "pad").
  virtual BatchPlan plan(std::int64_t epoch, std::int64_t batch) const = 0;

  /// Sample numbers of a batch in row order; cheap.
  virtual std::vector<std::int64_t> batch_samples(std::int64_t epoch, std::int64_t batch) const = 0;

  /// schema.json, view.json (every default filled in), batch-….json.
  virtual Json schema() const = 0;
  virtual Json resolved() const = 0;
  virtual Json provenance(std::int64_t epoch, std::int64_t batch) const = 0;

  /// Coordinates after selection, for coords/ and schema.json: name, dims, values.
  struct Coordinate {
    std::string name;
    std::vector<std::string> dims;
    NdArray values;
    std::string note;                  // as CfDecoding's
    Json attributes = Json::object();  // as stored, without those of the encoding
  };
  virtual const std::vector<Coordinate>& coordinates() const = 0;
  /// Coordinates of the tensors of one batch, for the zarr format: along "sample" and the tensor
  /// dims.
  virtual std::vector<Coordinate> batch_coordinates(std::int64_t epoch,
                                                    std::int64_t batch) const = 0;
};

}  // namespace batchfs
