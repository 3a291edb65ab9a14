#pragma once
// The rows of a list that the other keys of "samples" and a split leave: "list" in batchfs-view(5).

#include <memory>
#include <string>
#include <vector>

#include "engine/view/geometry.h"
#include "engine/view/list/sample_list.h"
#include "engine/view/samples/restrictions.h"
#include "engine/view/samples/sample_index.h"
#include "engine/view/spec.h"

namespace batchfs {

/// Immutable, thread-safe.
struct RestrictedList {
  std::shared_ptr<const SampleList> list;  // the rows that are left, in their order
  std::vector<bool> kept;                  // whether each row of the file is left; empty: all are
  /// The starts that restrictions leave along each dimension, those of the rows among them.
  WindowGrid grid;
  /// Windows of `grid` that a mask or a split over several dimensions leaves. Null: all.
  std::shared_ptr<const SampleIndex> allowed;
  /// Rows, by the first restriction that leaves them out.
  Dropped dropped;
  std::vector<std::string> warnings;
};

/// Reads coordinates and the mask's variable, blocking. Throws invalid_argument where no row is
/// left, and as restrict_windows(), restrict_by_mask() and keep_part().
std::shared_ptr<const RestrictedList> restrict_list(const ViewSpec& spec,
                                                    const RestrictedView& view,
                                                    std::shared_ptr<const SampleList> list);

/// The list without the rows whose windows have missing values: those that `without`, an index of
/// the windows of the list's grid, lacks. Throws invalid_argument where none is left.
std::shared_ptr<const RestrictedList> without_missing_rows(
    const RestrictedList& before, const SkipRule& skip, std::shared_ptr<const SampleIndex> without);

}  // namespace batchfs
