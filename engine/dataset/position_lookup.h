#pragma once
// Looking up "#3" and ranges of such positions, which count in a selection of a dimension.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "engine/dataset/index_lookup.h"
#include "engine/dataset/positions.h"
#include "engine/dataset/selector.h"

namespace batchfs {

/// Refers to `labels`, which must outlive it. Results are positions in `counted`.
class PositionLookup {
 public:
  PositionLookup(const IndexLookup& labels, Positions counted);

  /// Does an end of the range look like a position?
  static bool is_range(const SelectorPart& part);
  /// "#-4": negative counts from the end. Throws not_found beyond the ends.
  std::int64_t position(const std::string& text) const;
  /// The positions of a range, before its step and fields. Throws when there are none.
  Positions range(const SelectorPart& part) const;

 private:
  std::string name() const;
  [[nodiscard]] Error outside(const std::string& text) const;
  [[nodiscard]] Error nothing() const;
  void check_is_no_label(const std::string& text, std::int64_t position) const;
  std::int64_t written_number(const std::string& text) const;
  std::int64_t number(const std::string& text) const;
  Positions range_round(const SelectorPart& part) const;

  const IndexLookup& labels_;
  const Positions counted_;
  /// Stored positions of labels that look like positions; absent until they are looked for.
  mutable std::optional<std::map<std::string, std::int64_t>> labels_like_positions_;
};

}  // namespace batchfs
