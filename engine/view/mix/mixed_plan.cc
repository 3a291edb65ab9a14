#include "engine/view/mix/mixed_plan.h"

#include <utility>

namespace batchfs {

void append_plan(BatchPlan&& own, const FirstParts& first, std::uint32_t tensors, BatchPlan& plan) {
  const auto parts = static_cast<std::uint32_t>(plan.parts.size());
  const auto repeats = static_cast<std::int32_t>(plan.repeats.size());
  const auto shift = [&](Part& part) {
    if (part.tensor >= tensors) part.tensor += first.combination;
    if (part.repeat >= 0) part.repeat += repeats;
  };
  for (ChunkUse use : own.chunks) {
    use.variable += first.variable;
    use.first_part += parts;
    plan.chunks.push_back(use);
  }
  for (Part& part : own.parts) {
    shift(part);
    plan.parts.push_back(std::move(part));
  }
  plan.repeats.insert(plan.repeats.end(), own.repeats.begin(), own.repeats.end());
  for (Padding& padding : own.paddings) {
    if (padding.tensor >= tensors) padding.tensor += first.combination;
    plan.paddings.push_back(padding);
  }
  for (std::uint32_t t = 0; t < own.padded.size(); ++t) {
    const std::uint32_t tensor = t < tensors ? t : t + first.combination;
    if (plan.padded.size() <= tensor) plan.padded.resize(tensor + 1);
    plan.padded[tensor] += own.padded[t];
  }
  plan.combined_paddings.insert(plan.combined_paddings.end(), own.combined_paddings.begin(),
                                own.combined_paddings.end());
  for (GivenValue value : own.given) {
    value.sample += first.sample;
    plan.given.push_back(value);
  }
  for (MadePart& made : own.made) {
    made.channel += first.made;
    shift(made.part);
    plan.made.push_back(std::move(made));
  }
  for (CombinedPart combined : own.combined) {
    combined.combination += first.combination;
    if (combined.tensor >= tensors) combined.tensor += first.combination;
    plan.combined.push_back(combined);
  }
}

}  // namespace batchfs
