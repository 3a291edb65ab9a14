#include "tools/service/generations/generation.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/store/fingerprint.h"
#include "engine/view/describe/resolved.h"
#include "engine/view/describe/schema.h"
#include "fs/session_state.h"
#include "tools/cli/samples.h"
#include "tools/cli/view_memory.h"
#include "tools/service/serving.h"

namespace batchfs {

Generation::~Generation() {
  files.reset();
  if (engine_ != nullptr)
    for (const auto& store : opened.stores()) engine_->forget(*store);
}

void Generation::resolve(const GenerationOptions& options, Engine& engine, Log& log) {
  engine_ = &engine;
  for (const auto& store : opened.stores()) engine.add_store(store);
  metadata_ = engine.hold(held_memory(opened, views));
  for (auto& view : views) view = find_samples(view, opened, options.store, engine, log);
}

std::string Generation::identity() const {
  constexpr std::string_view kArithmetic = "4";
  Fingerprint print;
  for (const auto& view : views) {
    print.add(json_text(resolved_view(*view)));
    print.add(json_text(view_schema(*view)));
  }
  for (const auto& [name, other] : opened.others)
    print.add(fmt::format("{}={} {}", name, other->store->url(), other->hierarchy->snapshot_id));
  const auto& revision = opened.hierarchy->revision;
  std::string identity =
      fmt::format("{} {} {}{}", kArithmetic, opened.hierarchy->snapshot_id, print.text(),
                  revision ? " " + fingerprint(revision->chosen_by) : "");
  for (const auto& [name, other] : opened.others)
    if (other->hierarchy->revision)
      identity += fmt::format(" {}={}", name, other->hierarchy->snapshot_id);
  return identity;
}

Json Generation::snapshot() const {
  Json json = {{"id", opened.hierarchy->snapshot_id}};
  for (const auto& [name, other] : opened.others)
    json["stores"][name] = {{"url", other->store->url()}, {"id", other->hierarchy->snapshot_id}};
  return json;
}

Json Generation::reading() const {
  Json json = snapshot();
  json["read"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(time));
  return json;
}

void Generation::begin(int of_session) {
  SessionState state(of_session);
  session = state.id();
  if (number == 0)
    number = state.begin_reading(identity(), time, versions.slot);
  else if (number != state.reading().number)
    throw Error(ErrorCode::stale,
                "the store was read again while this process opened it; try again",
                opened.store->url());
}

std::shared_ptr<Generation> read_generation(const GenerationOptions& options, Log& log) {
  const auto generation = std::make_shared<Generation>();
  generation->time = std::time(nullptr);
  StoreOptions store = options.store;
  if (options.session >= 0 && store.config.versions == nullptr) {
    generation->versions = SessionState(options.session).new_versions();
    store.config.versions = generation->versions.table;
  }
  generation->opened = open_zarr(store);
  GroupDatasets datasets(generation->opened);
  generation->views = load_views(datasets, options.views, options.check_file, options.input);
  if (options.describes) generation->dataset = described_dataset(generation->opened, datasets, log);
  return generation;
}

std::string fixed_version(const StoreOptions& store) {
  if (!store.others.empty()) return "";  // they may change
  const IcechunkOptions& options = store.config.icechunk;
  if (!options.tag.empty()) return "tag " + options.tag;
  if (!options.snapshot.empty()) return "snapshot " + options.snapshot;
  return options.as_of ? "--as-of" : "";
}

void check_refresh(const StoreOptions& options, double refresh) {
  const std::string fixed = fixed_version(options);
  if (refresh > 0 && !fixed.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} never changes: leave out --refresh, or name a branch", fixed),
                "--refresh");
}

}  // namespace batchfs
