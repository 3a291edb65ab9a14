#include "gpu/handoff/shared_view.h"

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/base/strings.h"
#include "engine/view/axes.h"
#include "engine/view/describe/resolved.h"
#include "engine/view/describe/schema.h"
#include "gpu/handoff/batch_windows.h"
#include "gpu/handoff/message_bytes.h"

namespace batchfs::handoff {

namespace {

/// The view's rule for batches that do not fill a round, derived from the ranks' numbers of
/// batches.
Remainder remainder_of(const View& view) {
  const std::int64_t world = view.batches() + 1;
  if (view.batches() == 0 || view.rank_batches(0, world) == 0) return Remainder::drop;
  return view.rank_batches(world - 1, world) == 0 ? Remainder::keep : Remainder::pad;
}

/// Batches on their way to a reader that has just closed keep their memory until their chunks have
/// been decoded: a reader that opens next waits for it, a moment.
Budget::Reservation reserve_soon(const Reserve& reserve, std::uint64_t bytes,
                                 const std::string& what) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kMoment{1000}, kStep{5};
  for (const auto end = Clock::now() + kMoment;; std::this_thread::sleep_for(kStep)) try {
      return reserve(bytes, what);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::no_memory || Clock::now() >= end) throw;
    }
}

}  // namespace

std::shared_ptr<const ViewDescription> SharedView::description(const Reserve& reserve) const {
  if (auto known = described.lock()) return known;
  const std::string schema = json_text(view_schema(*view)) + "\n",
                    resolved = json_text(resolved_view(*view)) + "\n";
  const std::size_t begin = (schema.size() + resolved.size() + 7) / 8 * 8;
  auto made = std::make_shared<ViewDescription>();
  made->schema_length = schema.size();
  made->view_length = resolved.size();
  made->coordinates_length = coordinates_size(*view);
  const std::uint64_t size = begin + made->coordinates_length;
  if (reserve)
    made->memory =
        reserve_soon(reserve, size, fmt::format("the labels and texts of view '{}'", view->name()));
  made->file = MemoryFiles(false).create("batchfs-view", size);
  std::memcpy(made->file.data(), schema.data(), schema.size());
  std::memcpy(made->file.data() + schema.size(), resolved.data(), resolved.size());
  write_coordinates(*view, made->file.data() + begin);
  made->file.seal();
  described = made;
  return made;
}

SharedView share_view(const std::shared_ptr<const View>& view) {
  return {.view = view, .remainder = remainder_of(*view)};
}

SharedViews share_views(const std::vector<std::shared_ptr<const View>>& views,
                        const std::shared_ptr<const void>& held, const ReadingRecord& reading) {
  SharedViews shared;
  for (const auto& view : views) {
    const auto one = std::make_shared<SharedView>(share_view(view));
    one->held = held;
    one->reading = reading;
    shared.push_back(one);
  }
  return shared;
}

std::shared_ptr<const SharedView> find_view(const SharedViews& views, const std::string& name) {
  if (name.empty() && views.size() == 1) return views.front();
  std::vector<std::string> names;
  std::shared_ptr<const SharedView> of_part;
  std::size_t parts = 0;
  for (const auto& shared : views) {
    if (shared->view->name() == name) return shared;
    names.push_back(shared->view->name());
    if (name.empty() || shared->view->spec().part.name != name) continue;
    of_part = shared;
    ++parts;
  }
  if (parts == 1) return of_part;
  if (views.empty()) throw Error(ErrorCode::not_found, "there are no views");
  if (name.empty())
    throw Error(ErrorCode::invalid_argument, "say which view: there are " + join(names, ", "));
  throw Error(ErrorCode::not_found, "there is no view '" + name + "'" + did_you_mean(name, names) +
                                        "; there are " + join(names, ", "));
}

void require_epoch(const SharedView& shared, std::int64_t epoch) {
  // Batches are numbered over all epochs in 63 bits.
  const std::int64_t per_epoch = shared.view->batches() + kMaxWorld;
  if (epoch < 0 || epoch > INT64_MAX / 4 / per_epoch)
    throw Error(ErrorCode::not_found, fmt::format("there is no epoch {}", epoch));
}

bool has_batch(const SharedView& shared, std::int64_t batch) {
  const std::int64_t batches = shared.view->batches();
  const std::int64_t end =
      shared.remainder == Remainder::pad && batches > 0 ? batches + kMaxWorld : batches;
  return batch >= 0 && batch < end;
}

std::vector<std::byte> welcome_message(const SharedView& shared, const ViewDescription& description,
                                       Mode mode, std::uint16_t version) {
  const View& view = *shared.view;
  WelcomeMessage welcome{};
  welcome.mode = mode;
  welcome.largest_depth = kMaxDepth;
  welcome.schema_length = description.schema_length;
  welcome.view_length = description.view_length;
  welcome.samples = view.samples();
  welcome.batch_size = view.batch_size();
  welcome.batches = view.batches();
  welcome.epochs = view.spec().epochs;
  welcome.remainder = static_cast<std::uint32_t>(shared.remainder);
  welcome.tensor_count = static_cast<std::uint32_t>(view.tensors().size());
  std::vector<std::byte> bytes;
  append(bytes, &welcome, sizeof welcome);
  if (version >= 2) {
    const CoordinatesRecord record{description.coordinates_length,
                                   static_cast<std::uint32_t>(view.coordinates().size()),
                                   static_cast<std::uint32_t>(view.axes().windows.size())};
    append(bytes, &record, sizeof record);
  }
  if (version >= 4) append(bytes, &shared.reading, sizeof shared.reading);
  finish<WelcomeMessage>(bytes, MessageType::welcome, version);
  return bytes;
}

}  // namespace batchfs::handoff
