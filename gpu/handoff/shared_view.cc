#include "gpu/handoff/shared_view.h"

#include <cstring>
#include <string>

#include "engine/base/json_text.h"
#include "engine/base/strings.h"
#include "gpu/handoff/batch_windows.h"
#include "gpu/handoff/message_bytes.h"

namespace batchfs::handoff {

namespace {

/// What ranks get says which rule a view has for batches that do not fill a round.
Remainder remainder_of(const View& view) {
  const std::int64_t world = view.batches() + 1;
  if (view.batches() == 0 || view.rank_batches(0, world) == 0) return Remainder::drop;
  return view.rank_batches(world - 1, world) == 0 ? Remainder::keep : Remainder::pad;
}

}  // namespace

SharedView share_view(const std::shared_ptr<const View>& view) {
  const std::string schema = json_text(view->schema()) + "\n",
                    resolved = json_text(view->resolved()) + "\n";
  const std::vector<std::byte> coordinates = coordinate_bytes(*view);
  const std::size_t begin = (schema.size() + resolved.size() + 7) / 8 * 8;
  SharedView result{view,
                    MemoryFiles(false).create("batchfs-view", begin + coordinates.size()),
                    schema.size(),
                    resolved.size(),
                    remainder_of(*view),
                    coordinates.size()};
  std::memcpy(result.texts.data(), schema.data(), schema.size());
  std::memcpy(result.texts.data() + schema.size(), resolved.data(), resolved.size());
  if (!coordinates.empty())
    std::memcpy(result.texts.data() + begin, coordinates.data(), coordinates.size());
  result.texts.seal();
  return result;
}

const SharedView& find_view(std::span<const SharedView> views, const std::string& name) {
  if (name.empty() && views.size() == 1) return views.front();
  std::vector<std::string> names;
  const SharedView* of_part = nullptr;
  std::size_t parts = 0;
  for (const SharedView& shared : views) {
    if (shared.view->name() == name) return shared;
    names.push_back(shared.view->name());
    if (name.empty() || shared.view->part().name != name) continue;
    of_part = &shared;
    ++parts;
  }
  if (parts == 1) return *of_part;
  if (name.empty())
    throw Error(ErrorCode::invalid_argument, "say which view: there are " + join(names, ", "));
  throw Error(ErrorCode::not_found, "there is no view '" + name + "'" + did_you_mean(name, names) +
                                        "; there are " + join(names, ", "));
}

std::vector<std::byte> welcome_message(const SharedView& shared, Mode mode, std::uint16_t version) {
  const View& view = *shared.view;
  WelcomeMessage welcome{};
  welcome.mode = mode;
  welcome.largest_depth = kMaxDepth;
  welcome.schema_length = shared.schema_length;
  welcome.view_length = shared.view_length;
  welcome.samples = view.samples();
  welcome.batch_size = view.batch_size();
  welcome.batches = view.batches();
  welcome.epochs = view.epochs();
  welcome.remainder = static_cast<std::uint32_t>(shared.remainder);
  welcome.tensor_count = static_cast<std::uint32_t>(view.tensors().size());
  std::vector<std::byte> bytes;
  append(bytes, &welcome, sizeof welcome);
  if (version >= 2) {
    const CoordinatesRecord record{shared.coordinates_length,
                                   static_cast<std::uint32_t>(view.coordinates().size()),
                                   static_cast<std::uint32_t>(view.window_dims().size())};
    append(bytes, &record, sizeof record);
  }
  finish<WelcomeMessage>(bytes, MessageType::welcome, version);
  return bytes;
}

}  // namespace batchfs::handoff
