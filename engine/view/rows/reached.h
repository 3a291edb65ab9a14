#pragma once
// The positions of a variable that the samples of a view hold: a scan reads these, and costs are
// estimated from them.

#include <cstdint>
#include <map>
#include <vector>

#include "engine/dataset/positions.h"
#include "engine/view/samples/missing.h"
#include "engine/view/samples/start_table.h"
#include "engine/view/view.h"

namespace batchfs {

/// Per dimension of the array, a subset of `selected`: less than that where restrictions leave out
/// starts. With `starts`, all restrictions do, joint ones too, else those of one dimension.
std::vector<Positions> reached_positions(const ViewScan& scan, std::uint32_t variable,
                                         const StartTable* starts = nullptr);

/// The reached positions of a variable of any view, by its number in View::variables(): xbatcher's
/// views leave nothing of the selection out.
std::vector<Positions> positions_to_read(const View& view, std::uint32_t variable);

/// positions_to_read() without positions beyond the last window and between windows: the positions
/// that batches take.
std::vector<Positions> positions_in_windows(const View& view, std::uint32_t variable);

/// Everything that the view selects, per dimension of the array.
std::vector<Positions> positions_selected(const View& view, std::uint32_t variable);

/// The positions without Positions::kNone.
Positions without_gaps(const Positions& positions);

/// How many chunks of this length along a dimension hold one of the positions.
std::int64_t chunks_along(const Positions& positions, std::int64_t length);

/// Decoded bytes of the chunks that hold something of the samples, by array; may be more than an
/// integer holds.
std::map<const Array*, double> bytes_to_read(const View& view);

}  // namespace batchfs
