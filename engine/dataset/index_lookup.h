#pragma once
// Looking labels up in one dimension's index.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/labels.h"
#include "engine/dataset/positions.h"
#include "engine/dataset/selector.h"

namespace batchfs {

/// Refers to the dataset, which must outlive it. Errors begin with `where`, or with the dimension.
class IndexLookup {
 public:
  using List = std::vector<std::int64_t>;

  IndexLookup(const Dataset& dataset, std::string dim, std::string where);

  /// "#3": not a label.
  static bool is_position(const std::string& text);
  /// Are the labels texts? Reads none.
  bool has_texts() const;

  /// The positions of a label, at least one, in stored order. `is_period`: the text is a date that
  /// is coarser than the index (partial_date()), so that many positions are expected.
  struct LabelPositions {
    Positions positions;
    bool is_period = false;
  };
  /// The positions of each label, in one pass over the index however many labels there are. Throws
  /// not_found with the nearest label.
  std::vector<LabelPositions> labels(const std::vector<std::string>& texts) const;
  /// Like pandas: a date that is coarser than the index is a range, else it is one label.
  bool partial_date(const std::string& text) const;
  /// The position of the label next to `text`; of two equally distant ones that of the larger.
  /// Throws not_found beyond the tolerance.
  std::int64_t nearest(const std::string& text, const std::optional<std::string>& tolerance) const;
  /// The positions of a range's labels, before its step and fields. Throws when there are none.
  Positions range(const SelectorPart& part) const;
  /// Throws invalid_argument for an open range, which cannot have `wrap`.
  void check_has_ends(const SelectorPart& part) const;

  /// "goes from 0 to 359".
  std::string extent() const;
  /// A label in the form for messages; a position where there are no labels.
  std::string shown(std::int64_t position) const;
  const std::string& dim() const { return dim_; }
  std::int64_t size() const { return size_; }
  [[nodiscard]] Error error(ErrorCode code, const std::string& why) const;

 private:
  const Dataset::Index& index() const;
  const NdArray& values() const { return index().values; }
  bool is_time() const { return times().has_value(); }
  bool is_text() const;
  std::optional<TimeAxis> times() const;
  int index_level() const;
  template <class Test>
  List matching(Test&& test) const;
  /// The positions of labels, once for each label that differs from the others.
  struct Distinct {
    std::vector<List> lists;
    std::vector<std::size_t> list_of;  // for each text
    std::vector<bool> is_period;       // for each text
  };
  Distinct find_times(const std::vector<std::string>& texts) const;
  Distinct find_texts(const std::vector<std::string>& texts) const;
  Distinct find_numbers(const std::vector<std::string>& texts) const;
  std::optional<LabelNumber> counted(LabelNumber number, std::string_view unit) const;
  LabelNumber parse_number(const std::string& text) const;
  LabelNumber parse_label(const std::string& text) const;
  DateRange date(const std::string& text) const;
  std::string nearest_label(const std::string& text) const;
  /// How far away a label is from `text`; NaN for none.
  std::function<LabelNumber(std::int64_t)> distance_from(const std::string& text) const;
  std::optional<double> period() const;
  Positions some(List found) const;
  Positions circle_range(const SelectorPart& part) const;
  void check_circle(const SelectorPart& part, double from, double to, bool descending,
                    std::size_t found) const;
  List range_of_times(const SelectorPart& part) const;
  List range_of_texts(const SelectorPart& part) const;
  List range_of_numbers(const SelectorPart& part) const;

  const Dataset& dataset_;
  const std::string dim_, where_;
  const std::int64_t size_;
};

}  // namespace batchfs
