#pragma once
// The description of a view for readers: its texts and coordinates, in one memory file for all of
// them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/pipeline/memory_file.h"
#include "engine/view/view.h"
#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {

/// The description of a view for its readers, made once.
struct SharedView {
  std::shared_ptr<const View> view;
  MemoryFile texts;  // schema.json and view.json, followed by the coordinates
  std::uint64_t schema_length = 0, view_length = 0;
  Remainder remainder = Remainder::keep;
  std::uint64_t coordinates_length = 0;
  ReadingRecord reading{};
  std::shared_ptr<const void> held = nullptr;
};

SharedView share_view(const std::shared_ptr<const View>& view);

/// The views of one reading of the store, which readers find by name.
using SharedViews = std::vector<std::shared_ptr<const SharedView>>;
/// `held` lives as long as any of them is used.
SharedViews share_views(const std::vector<std::shared_ptr<const View>>& views,
                        const std::shared_ptr<const void>& held = nullptr,
                        const ReadingRecord& reading = {});
/// The view that a reader names: by its name or, for a split, by that of a part that no other view
/// has; with an empty `name` the only one. Throws invalid_argument and not_found, which list the
/// names.
std::shared_ptr<const SharedView> find_view(const SharedViews& views, const std::string& name);

/// Throws not_found for an invalid epoch.
void require_epoch(const SharedView& shared, std::int64_t epoch);
/// Can the batch be requested? Padded ranks have batches after the last.
bool has_batch(const SharedView& shared, std::int64_t batch);

/// The Welcome to a reader of this version.
std::vector<std::byte> welcome_message(const SharedView& shared, Mode mode, std::uint16_t version);

}  // namespace batchfs::handoff
