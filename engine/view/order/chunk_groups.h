#pragma once
// Groups of windows of a view that begin in the same chunks: the order "block" keeps them together.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/view/geometry.h"
#include "engine/view/order/order.h"
#include "engine/view/order/source_chunks.h"

namespace batchfs {

/// A view's variables, and where its windows start. Non-owning.
struct WindowedVariables {
  const std::vector<const Variable*>& variables;
  const std::map<std::string, Positions>& selected;  // by dimension
  const std::vector<WindowDim>& windows;
  const WindowGrid& grid;  // over `windows`
  /// The source whose chunks form the groups; null: the first.
  const SourceChunks* by = nullptr;
};

/// The longest chunk that a variable has along a dimension.
std::int64_t longest_chunk(const WindowedVariables& view, const std::string& dim);

/// Groups by the longest chunks that a variable has along each window dimension. Where starts do
/// not meet the borders of chunks, because of the stride or of the selection, the groups are as
/// long, wherever they begin.
/// With `by`, a group holds the successive starts that lie in one chunk of that source.
/// `span`: how many chunks long a group is, by dimension, else one. Throws invalid_argument where a
/// group would be longer than half of the positions.
ChunkGroups chunk_groups(const WindowedVariables& view,
                         const std::vector<std::pair<std::string, std::int64_t>>& span = {});

/// The number of groups to mix with each other where the view does not set it: as many as decode to
/// about 128 MB, 1 to 1024. That mixes well, and fits any machine's memory.
std::int64_t default_mixing(const WindowedVariables& view, const ChunkGroups& groups);
/// The same for groups that have `positions(dim)` positions along a dimension of the windows.
std::int64_t default_mixing(const WindowedVariables& view,
                            const std::function<double(const std::string& dim)>& positions);

}  // namespace batchfs
