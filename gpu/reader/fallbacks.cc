#include "gpu/reader/fallbacks.h"

#include <numeric>

namespace batchfs::reader {

using handoff::Fallback;

namespace {

const char* explanation(Fallback fallback) {
  switch (fallback) {
    case Fallback::none:
      break;
    case Fallback::by_number:
      return "they were asked for by number (by_number)";
    case Fallback::behind:
      return "readers of the same rank are at other places of the epoch (behind)";
    case Fallback::past_end:
      return "they lie behind the last batch of the rank (past_end)";
    case Fallback::slots_held:
      return "readers hold all slots of GPU memory (slots_held); let go of batches or allow more "
             "GPU memory";
    case Fallback::no_memory:
      return "there is too little GPU memory (no_memory); allow more of it or make batches smaller";
    case Fallback::not_decoded:
      return "the GPU does not decode their chunks (not_decoded); the log of batchfs says more";
    case Fallback::failed:
      break;
  }
  return "the GPU or its decoder failed (failed); the log of batchfs says more";
}

}  // namespace

void Fallbacks::add(Fallback fallback) {
  ++batches_;
  const auto i = static_cast<std::size_t>(fallback);
  ++counts_[i < counts_.size() ? i : static_cast<std::size_t>(Fallback::failed)];
}

std::string Fallbacks::text() const {
  const std::uint64_t on_host =
      std::accumulate(counts_.begin() + 1, counts_.end(), std::uint64_t{0});
  if (on_host == 0) return {};
  std::string text = std::to_string(on_host) + " of " + std::to_string(batches_) +
                     " batches were made on the host";
  const char* separator = ": ";
  for (std::size_t i = 1; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    text += separator + std::to_string(counts_[i]) + " because " +
            explanation(static_cast<Fallback>(i));
    separator = "; ";
  }
  return text;
}

}  // namespace batchfs::reader
