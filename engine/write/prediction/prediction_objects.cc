#include "engine/write/prediction/prediction_objects.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/store/fingerprint.h"
#include "engine/write/run_identity.h"
#include "engine/zarr/node_path.h"

namespace batchfs {

namespace {

void check(const PredictionSamples& samples) {
  const bool fits = samples.starts.size() == samples.numbers.size() * samples.dims.size() &&
                    samples.dims.size() <= kMaxDims &&
                    std::adjacent_find(samples.numbers.begin(), samples.numbers.end(),
                                       std::greater_equal()) == samples.numbers.end();
  if (!fits)
    throw Error(ErrorCode::invalid_argument,
                "the samples are not ascending, or have other starts than dimensions");
}

/// "3/0/12" as indices into a grid; nullopt for other names.
std::optional<Dims> parse_index(std::string_view text, const Dims& grid) {
  Dims index;
  while (index.size() < grid.size()) {
    std::int64_t value = -1;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || value < 0 || value >= grid[index.size()]) return std::nullopt;
    index.push_back(value);
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    if (index.size() == grid.size()) break;
    if (!text.starts_with('/')) return std::nullopt;
    text.remove_prefix(1);
  }
  if (!text.empty()) return std::nullopt;
  return index;
}

}  // namespace

PredictionObjects::PredictionObjects(std::vector<PredictedArray> arrays, PredictionSamples samples,
                                     const PredictionOptions& options,
                                     const PredictionFolder& folder)
    : folder_(folder), samples_(std::move(samples)), overlap_(options.overlap) {
  check(samples_);
  bool undoes = false;
  for (PredictedArray& array : arrays) {
    undoes = undoes || array.scale != nullptr;
    placements_.emplace_back(std::move(array), samples_, options);
  }
  documents_ = std::make_unique<PredictionDocuments>(placements_, options.compression);
  Json described = documents_->identity();
  identity_ = {{"batchfs", "predictions"},
               {"version", 3},
               {"source", options.source},
               {"arrays", std::move(described["arrays"])},
               {"overlap", overlap_name(overlap_)},
               {"samples", samples_.digest},
               {"denormalize", undoes},
               {"coordinates", std::move(described["coordinates"])}};
  parts_ = std::make_unique<SampleParts>(folder, fingerprint(json_text(identity_)), options.rank);
}

std::size_t PredictionObjects::row_of(std::int64_t sample) const {
  const auto& numbers = samples_.numbers;
  const auto found = std::lower_bound(numbers.begin(), numbers.end(), sample);
  if (found == numbers.end() || *found != sample)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the view has no sample {} in the epoch that the output is of: create "
                            "it with the view and the epoch that the batches are of",
                            sample));
  return static_cast<std::size_t>(found - numbers.begin());
}

const std::int64_t* PredictionObjects::starts_of(std::size_t row) const {
  return samples_.starts.data() + row * samples_.dims.size();
}

std::string PredictionObjects::object_key(const ObjectKey& key) const {
  const Placement& placement = placements_[key.array];
  std::string text = placement.name() + "/c";
  for (const std::int64_t at : placement.object_index(key.number)) text += fmt::format("/{}", at);
  return text;
}

bool PredictionObjects::is_there(const ObjectKey& key) const {
  return folder_.has(object_key(key));
}

std::vector<bool> PredictionObjects::objects_there(std::size_t array) const {
  const Placement& placement = placements_[array];
  const auto objects = static_cast<std::size_t>(placement.objects());
  std::vector<bool> there(objects, folder_.has("zarr.json"));
  if (objects == 0 || there[0]) return there;
  folder_.each_object(placement.name() + "/c", [&](const std::string& below) {
    if (const auto index = parse_index(below, placement.grid()))
      there[static_cast<std::size_t>(placement.object_number(*index))] = true;
  });
  return there;
}

std::set<std::int64_t> PredictionObjects::samples_in_parts(const ObjectKey& key) const {
  std::set<std::int64_t> samples = parts_->samples(placements_[key.array].name(), key.number);
  for (const std::int64_t sample : samples)
    if (!std::binary_search(samples_.numbers.begin(), samples_.numbers.end(), sample) ||
        bytes_in(key, sample) == 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a part in '{}' has samples that the view does not have; remove the "
                              "output and write it anew",
                              folder_.path(".batchfs")));
  return samples;
}

std::vector<ObjectKey> PredictionObjects::objects_with_parts() const {
  std::vector<ObjectKey> keys;
  for (std::size_t array = 0; array < placements_.size(); ++array)
    for (const std::int64_t number : parts_->numbers(placements_[array].name())) {
      if (number >= placements_[array].objects() || placements_[array].expected(number) == 0)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("'{}' has parts of another run; remove it and write it anew",
                                folder_.root()));
      keys.push_back({array, number});
    }
  return keys;
}

std::vector<bool> PredictionObjects::samples_there() const {
  std::vector<bool> done(samples_.size(), true);
  if (folder_.has("zarr.json")) return done;
  std::map<ObjectKey, std::set<std::int64_t>> in_parts;
  for (const ObjectKey& key : objects_with_parts()) in_parts[key] = samples_in_parts(key);
  for (std::size_t array = 0; array < placements_.size(); ++array) {
    // After the parts: an object that was put meanwhile has taken its parts.
    const std::vector<bool> there = objects_there(array);
    for (std::size_t row = 0; row < samples_.size(); ++row) {
      if (!done[row]) continue;
      placements_[array].each_object(starts_of(row), [&](std::int64_t number) {
        if (there[static_cast<std::size_t>(number)]) return;
        const auto parts = in_parts.find({array, number});
        if (parts == in_parts.end() || !parts->second.contains(samples_.numbers[row]))
          done[row] = false;
      });
    }
  }
  return done;
}

std::uint64_t PredictionObjects::objects_lacking() const {
  std::uint64_t lacking = 0;
  for (std::size_t array = 0; array < placements_.size(); ++array) {
    const std::vector<bool> there = objects_there(array);
    for (std::size_t number = 0; number < there.size(); ++number)
      if (!there[number] && placements_[array].expected(static_cast<std::int64_t>(number)) > 0)
        ++lacking;
  }
  return lacking;
}

std::uint64_t PredictionObjects::bytes_in(const ObjectKey& key, std::int64_t sample) const {
  const Placement& placement = placements_[key.array];
  const auto boxes = placement.boxes(key.number, starts_of(row_of(sample)));
  return static_cast<std::uint64_t>(Placement::elements(boxes)) * placement.itemsize();
}

bool PredictionObjects::add(const ObjectKey& key, ObjectSamples samples) const {
  const Placement& placement = placements_[key.array];
  const std::string& name = placement.name();
  const std::size_t expected = placement.expected(key.number);
  if (samples.size() == expected) {
    put(key, samples);
    return true;
  }
  const std::unique_ptr<OutputStore::Lock> lock = parts_->lock(name, key.number);
  if (is_there(key)) {  // of a process that was killed before it could remove them
    parts_->discard(name, key.number);
    return true;
  }
  std::set<std::int64_t> all = samples_in_parts(key);
  for (const auto& [sample, values] : samples) all.insert(sample);
  if (all.size() < expected) {
    if (!samples.empty()) parts_->put(name, key.number, samples);
    return false;
  }
  ObjectSamples found =
      parts_->read(name, key.number, [&](std::int64_t sample) { return bytes_in(key, sample); });
  // For a sample in both, the values in memory are the newer ones.
  samples.merge(found);
  put(key, samples);
  parts_->discard(name, key.number);
  return true;
}

void PredictionObjects::put_part(const ObjectKey& key, const ObjectSamples& samples) const {
  parts_->put(placements_[key.array].name(), key.number, samples);
}

void PredictionObjects::put_complete() const {
  for (const ObjectKey& key : objects_with_parts()) add(key, {});
}

void PredictionObjects::put(const ObjectKey& key, const ObjectSamples& samples) const {
  const Placement& placement = placements_[key.array];
  const Buffer values = fold_samples(
      placement, key.number, samples,
      [this](std::int64_t sample) { return starts_of(row_of(sample)); }, overlap_);
  documents_->put_object(key.array, placement, key.number, values.data(), folder_.store());
}

void PredictionObjects::put_rest() const { documents_->put_rest(folder_.store()); }

}  // namespace batchfs
