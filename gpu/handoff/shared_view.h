#pragma once
// The views of a server, and the description of each for its readers: its texts and coordinates, in
// one memory file for all of them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/budget.h"
#include "engine/pipeline/memory_file.h"
#include "engine/view/view.h"
#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {

/// Reserves memory for readers, beside that of their batches. `what` takes it, in the words of
/// Engine::reserve(). Throws no_memory.
using Reserve = std::function<Budget::Reservation(std::uint64_t bytes, const std::string& what)>;

/// The texts and the coordinates of a view, in memory.
struct ViewDescription {
  MemoryFile file;  // schema.json and view.json, followed by the coordinates
  std::uint64_t schema_length = 0, view_length = 0, coordinates_length = 0;
  Budget::Reservation memory{};
};

struct SharedView {
  std::shared_ptr<const View> view;
  Remainder remainder = Remainder::keep;
  ReadingRecord reading{};
  std::shared_ptr<const void> held = nullptr;

  /// Made for the first reader, and kept as long as one holds it. An empty `reserve` reserves
  /// nothing. Throws no_memory. Not thread-safe.
  std::shared_ptr<const ViewDescription> description(const Reserve& reserve) const;

  mutable std::weak_ptr<const ViewDescription> described{};  // by description()
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
std::vector<std::byte> welcome_message(const SharedView& shared, const ViewDescription& description,
                                       Mode mode, std::uint16_t version);

}  // namespace batchfs::handoff
