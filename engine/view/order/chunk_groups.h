#pragma once
// Which windows of a view begin in the same chunks: what the order "block" keeps together.

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

/// What a view takes, and where its windows start. All of it is the view's.
struct WindowedVariables {
  const std::vector<const Variable*>& variables;
  const std::map<std::string, Positions>& selected;  // by dimension
  const std::vector<WindowDim>& windows;
  const WindowGrid& grid;  // over `windows`
  /// Of the source that groups are made by; null: the first.
  const SourceChunks* by = nullptr;
};

/// The longest chunk that a variable has along a dimension.
std::int64_t longest_chunk(const WindowedVariables& view, const std::string& dim);

/// By the longest chunks that a variable has along each window dimension. Where starts do not meet
/// the borders of chunks, because of the stride or of what is selected, the groups are as long,
/// wherever they begin.
/// With `by`, a group holds the successive starts that lie in one chunk of that source.
/// `span`: how many chunks long a group is, by dimension, else one. Throws invalid_argument where a
/// group would be longer than half of the positions.
ChunkGroups chunk_groups(const WindowedVariables& view,
                         const std::vector<std::pair<std::string, std::int64_t>>& span = {});

/// How many groups to mix with each other where the view does not say: as many as decode to about
/// 128 MB, 1 to 1024. That mixes well, and any machine keeps it.
std::int64_t default_mixing(const WindowedVariables& view, const ChunkGroups& groups);
/// The same for groups that have `positions(dim)` positions along a dimension of the windows.
std::int64_t default_mixing(const WindowedVariables& view,
                            const std::function<double(const std::string& dim)>& positions);

}  // namespace batchfs
