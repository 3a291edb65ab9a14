#pragma once
// "mix" of a view file: the views that it mixes, and their proportions.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/view/mix/mix_start.h"
#include "engine/view/spec.h"

namespace batchfs {

struct MixComponent {
  std::string name;
  std::string path;                 // in the mixture's file, for messages
  std::string file;                 // of the view, as written; empty: `view`
  Json view;                        // the view itself
  std::string store;                // of --store; empty: the command's own
  std::optional<std::string> part;  // of the view's split
  std::optional<double> weight, repeat;
  std::optional<std::int64_t> samples;  // of an epoch
  MixStart start;                       // the samples read before
};

struct MixSpec {
  enum class Mixing : std::uint8_t { sample, stratified, batch };

  std::vector<MixComponent> components;
  double temperature = 1;
  Mixing mixing = Mixing::sample;
  std::optional<std::int64_t> block;  // positions that have exact quotas
  ViewSpec view;                      // name, batch, order, epochs and formats of the mixture
};

/// Is this the text of a mixture? Throws invalid_argument for malformed JSON.
bool is_mixture(const std::string& json, const std::string& where);

/// The text of a mixture with this JSON as its "start". Throws invalid_argument where it is none.
std::string with_mix_start(const std::string& json, const std::string& start,
                           const std::string& where);

/// Throws invalid_argument with the JSON path. `name` is used when the text contains none.
MixSpec parse_mix_spec(const std::string& json, const std::string& name, const std::string& where);

std::string_view mixing_name(MixSpec::Mixing mixing);

}  // namespace batchfs
