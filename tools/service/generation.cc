#include "tools/service/generation.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <xxhash.h>

#include "engine/base/json_text.h"
#include "engine/base/strings.h"
#include "tools/cli/samples.h"
#include "tools/service/serving.h"

namespace batchfs {

namespace {

std::string digest_of(const std::string& text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

}  // namespace

Generation::~Generation() {
  files.reset();
  if (engine_ != nullptr)
    for (const auto& store : opened.stores()) engine_->forget(*store);
}

void Generation::resolve(const GenerationOptions& options, Engine& engine, Log& log) {
  engine_ = &engine;
  for (const auto& store : opened.stores()) engine.add_store(store);
  metadata_ = engine.hold(opened.held_memory());
  for (auto& view : views) view = find_samples(view, opened, options.store, engine, log);
}

std::string Generation::identity() const {
  constexpr std::string_view kArithmetic = "4";
  std::uint64_t digest = 0;
  const auto add = [&digest](const std::string& text) {
    digest = XXH3_64bits_withSeed(text.data(), text.size(), digest);
  };
  for (const auto& view : views) {
    add(json_text(view->resolved()));
    add(json_text(view->schema()));
  }
  for (const auto& [name, other] : opened.others)
    add(fmt::format("{}={} {}", name, other->store->url(), other->hierarchy->snapshot_id));
  const auto& revision = opened.hierarchy->revision;
  std::string identity = fmt::format("{} {} {:016x}{}", kArithmetic, opened.hierarchy->snapshot_id,
                                     digest, revision ? " " + digest_of(revision->chosen_by) : "");
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

std::shared_ptr<Generation> read_generation(const GenerationOptions& options, Log& log) {
  const auto generation = std::make_shared<Generation>();
  generation->time = std::time(nullptr);
  generation->opened = open_zarr(options.store);
  GroupDatasets datasets(generation->opened);
  generation->views = load_views(datasets, options.views, options.check_file, options.input);
  if (options.describes) generation->dataset = described_dataset(generation->opened, datasets, log);
  return generation;
}

std::string pinned_snapshot(const std::string& identity, const IcechunkOptions& options) {
  const std::vector<std::string> words = split(identity, ' ');
  const std::string branch = "branch " + (options.branch.empty() ? "main" : options.branch);
  const bool follows_branch = options.tag.empty() && options.snapshot.empty() && words.size() > 3 &&
                              words[3] == digest_of(branch);
  return follows_branch ? words[1] : std::string();
}

void pin_others(const std::string& identity, std::vector<StoreOptions::Named>& others) {
  for (const std::string& word : split(identity, ' '))
    for (StoreOptions::Named& other : others)
      if (word.starts_with(other.name + "=")) other.pinned = word.substr(other.name.size() + 1);
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
