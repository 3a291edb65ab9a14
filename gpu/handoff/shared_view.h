#pragma once
// What readers are told of a view: its texts and coordinates, in one memory file for all of them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/pipeline/memory_file.h"
#include "engine/view/view.h"
#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {

/// What a view's readers are told, made once.
struct SharedView {
  std::shared_ptr<const View> view;
  MemoryFile texts;  // schema.json and view.json, and behind them the coordinates
  std::uint64_t schema_length = 0, view_length = 0;
  Remainder remainder = Remainder::keep;
  std::uint64_t coordinates_length = 0;
};

SharedView share_view(const std::shared_ptr<const View>& view);

/// The view that a reader names: by its name or, of a split, by that of a part that no other view
/// has; with an empty `name` the only one. Throws invalid_argument and not_found, which list the
/// names.
const SharedView& find_view(std::span<const SharedView> views, const std::string& name);

/// The Welcome to a reader of this version.
std::vector<std::byte> welcome_message(const SharedView& shared, Mode mode, std::uint16_t version);

}  // namespace batchfs::handoff
