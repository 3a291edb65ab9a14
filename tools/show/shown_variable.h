#pragma once
// One variable on a page: a picture of a part of it, and a summary of the part's values.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/label_number.h"
#include "tools/inspect/inspected_array.h"
#include "tools/show/chunk_presence.h"
#include "tools/show/colour_sets.h"
#include "tools/show/variable_sample.h"

namespace batchfs {

/// An end of a picture's axis is a label: "90", "2000-01-01".
struct ShownAxis {
  std::string name, units, first, last;  // first: left, or top
};

/// Texts are unescaped store contents: escape them.
struct ShownVariable {
  std::string path, title, units, type;
  std::string position;  // "time 2000-01-15 (16 of 31)", the dimensions that are not shown
  std::string region;    // "the middle 2048 x 2048 of 10980 x 10980"; empty: all of the plane
  std::string why_not;   // why there is no sample; else empty
  std::int64_t chunks = 0;
  std::uint64_t bytes = 0;  // decoded, of the chunks that were read
  SampleSummary summary;
  std::optional<ColourScale> scale;  // of the picture; nullopt: true colours
  std::vector<std::byte> png;        // empty: no picture
  std::int64_t across = 0, down = 0;
  ShownAxis lines, columns;
  std::string coast;  // coast_path() for picture_size()
  ChunkPresence presence;
  const InspectedArray* array = nullptr;  // null: several arrays, see `title`

  /// Does the summary hold every value of the array?
  bool is_whole() const {
    return array != nullptr && summary.count == element_count(array->metadata->shape);
  }
};

/// Width and height of a picture on the page, in user units: neither too flat nor too high.
std::pair<double, double> picture_size(std::int64_t across, std::int64_t down);

/// Reads parts of variables and caches the coordinates that several have in common. Not
/// thread-safe.
class VariableReader {
 public:
  /// The arguments outlive it.
  VariableReader(const OpenedStore& opened, Engine& engine) : opened_(opened), engine_(engine) {}

  /// `name`: of the array, or of a field of it. Errors become `why_not`. Sets no presence.
  ShownVariable look_at(const InspectedArray& array, const std::string& name,
                        const SampleLimits& limits);
  /// A picture in true colours, without summary; `title` names the bands and their ranges.
  ShownVariable look_at(const ColourSet& set, const SampleLimits& limits);
  /// The labels of a dimension, see LabelsOf.
  std::vector<std::string> labels_of(const InspectedArray& array, const std::string& dim);

 private:
  using Index = Dataset::Index;
  struct Part;
  std::shared_ptr<const Dataset> coordinates_of(const std::string& group,
                                                const std::vector<std::string>& dims);
  Part read(const ColourPart& part, const SampleLimits& limits);

  const OpenedStore& opened_;
  Engine& engine_;
  std::map<std::vector<std::string>, std::shared_ptr<const Dataset>> coordinates_;
};

}  // namespace batchfs
