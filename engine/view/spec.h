#pragma once
// A view file as written: its keys, checked for type and spelling, not yet looked up in a dataset.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset/selection.h"
#include "engine/view/coarsen/coarsen_spec.h"
#include "engine/view/list/list_spec.h"
#include "engine/view/list/weights.h"
#include "engine/view/made/made_spec.h"
#include "engine/view/normalize.h"
#include "engine/view/order/order.h"
#include "engine/view/samples/sample_spec.h"
#include "engine/view/samples/skip_rule.h"
#include "engine/view/split/split_spec.h"

namespace batchfs {

struct WindowSpec {
  /// The treatment of a window that reaches over the end.
  enum class Edge : std::uint8_t { drop, pad, partial };

  std::string dim;
  std::int64_t size = 1, stride = 1;
  bool wrap = false;
  Edge edge = Edge::drop;
  /// In place of the numbers until resolve_window_durations().
  std::optional<Duration> size_duration, stride_duration;
  bool has_stride = false;  // else it is the size
  /// Starts are labels that lie a multiple of this after the origin; the stride is then 1.
  std::optional<Duration> every;
  std::optional<std::string> origin;  // "first" or a date; nothing: that of the units
  std::string every_path, origin_path;
  std::string size_path, stride_path;  // in the file, for messages
};

class LabelOffsets;

struct TensorDefinition {
  std::string name;
  std::vector<std::string> variables;                                      // of the store
  std::vector<MadeSpec> made = {};                                         // channels beside them
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> offsets;  // by dim
  std::vector<OffsetList> durations;  // offsets that are durations
  /// The same, once they can be looked up; `offsets` then has as many zeros along the dimension.
  std::vector<std::pair<std::string, std::shared_ptr<const LabelOffsets>>> by_label;
  std::optional<std::string> stack;
  std::optional<std::vector<std::string>> dims;
  std::vector<CoarsenStep> coarsen = {};
  bool broadcast = false;  // variables are repeated along dimensions of the tensor that they lack
  std::string path;        // in the file, for messages

  /// The steps along a dimension; null: none.
  const std::vector<std::int64_t>* offsets_along(const std::string& dim) const {
    for (const auto& [along, steps] : offsets)
      if (along == dim) return &steps;
    return nullptr;
  }
  /// The offsets along a dimension that are durations; null: none.
  std::shared_ptr<const LabelOffsets> by_label_along(const std::string& dim) const {
    for (const auto& [along, labels] : by_label)
      if (along == dim) return labels;
    return nullptr;
  }
};

struct XbatcherSpec {
  std::vector<std::pair<std::string, std::int64_t>> input_dims, input_overlap, batch_dims;
  bool concat_input_dims = false;
};

struct ViewSpec {
  enum class Remainder : std::uint8_t { keep, drop, pad };
  enum class Missing : std::uint8_t { keep, fill, skip };

  std::string name;
  std::optional<std::vector<std::string>> variables;
  std::vector<std::pair<std::string, Selector>> select;
  std::vector<WindowSpec> window;
  std::optional<double> pad_value;        // of every window dimension with an edge
  std::vector<TensorDefinition> tensors;  // empty: one per variable
  std::int64_t batch_size = 1;
  Remainder remainder = Remainder::keep;
  Order order{.buffer = 0};                                // 0: set by the view
  std::vector<std::pair<std::string, std::int64_t>> span;  // chunks of a group, by dim
  std::int64_t epochs = 1;
  std::optional<std::int64_t> epoch_samples;  // nothing: all of them
  std::optional<DataType> dtype;
  std::optional<NormalizeSpec> normalize;
  Missing missing = Missing::keep;
  double fill_value = 0;
  SkipRule skip;  // with Missing::skip
  SampleSpec samples;
  std::optional<ListSpec> list;        // the samples one by one
  std::optional<WeightsSpec> weights;  // how often each is drawn
  std::vector<OffsetList> reserve;     // windows are counted as if these offsets existed
  std::optional<SplitSpec> split;
  SplitPart part;  // with a split
  std::vector<std::string> formats{"npy"};
  std::optional<XbatcherSpec> xbatcher;
  bool as_decoded = false;  // ViewOptions::as_decoded
  Json document;            // as written
};

/// Settings of a mixture that replace those of each of its views.
struct MixedIn {
  std::int64_t batch_size = 1;
  std::vector<std::string> formats;
  std::string name = {};  // of the view in the mixture
};

/// The inputs of a view beside its own text.
struct ViewOptions {
  ReadFile read_file;  // empty: files cannot be named
  FilePath file_path;  // the same, for files that are read piece by piece
  bool as_decoded =
      false;  // without "normalize", "missing" and "dtype", all numbers float64: for scans
  /// The image level of its dataset, resolved from "level" and --level.
  std::optional<std::int64_t> level = {};
  std::optional<std::string> part = {};  // of its split
  bool first_part = false;               // where `part` names none
  std::optional<MixedIn> mixed = {};     // the view is one of a mixture
};

/// Throws invalid_argument with the JSON path, or not_supported.
ViewSpec parse_view_spec(const std::string& json, const std::string& name, const std::string& where,
                         const ViewOptions& options = {});

std::string_view remainder_name(ViewSpec::Remainder remainder);
std::string_view shuffle_name(Order::Shuffle shuffle);
std::string_view missing_name(ViewSpec::Missing missing);
std::string_view edge_name(WindowSpec::Edge edge);

}  // namespace batchfs
