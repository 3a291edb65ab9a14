#pragma once
// The samples of an epoch as a table, for programs that put results back in their places.

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "engine/view/view.h"

namespace batchfs {

/// Writes an .npy file of int64, part by part: a row for every sample of the epoch, in its order.
/// Columns: the number of the batch, the number of the sample, and for every dimension of the
/// window the start of the sample's window, a position of the selection.
///
/// Precondition: the view's samples are known (View::needs_scan()). Memory: one batch of rows.
void write_window_table(const View& view, std::int64_t epoch,
                        const std::function<void(std::span<const std::byte>)>& write);

}  // namespace batchfs
