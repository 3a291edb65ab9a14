#include "gpu/handoff/fallback_log.h"

namespace batchfs::handoff {

namespace {

std::string explanation(Fallback why) {
  switch (why) {
    case Fallback::none:
      break;
    case Fallback::by_number:
      return "it was asked for by its number, and only streams are made on a GPU";
    case Fallback::behind:
      return "readers of the same rank are at more than two places of the stream";
    case Fallback::past_end:
      return "it lies behind the last batch of the rank's stream";
    case Fallback::slots_held:
      return "readers hold all slots of GPU memory; let go of batches, or allow more GPU memory";
    case Fallback::no_memory:
      return "there is too little GPU memory; allow more of it, or make batches smaller";
    case Fallback::not_decoded:
      return "the GPU does not decode one of its chunks";
    case Fallback::failed:
      return "the GPU stage has failed";
  }
  return "unknown";
}

/// Is the fallback a consequence of the readers' behaviour rather than of missing resources?
bool is_expected(Fallback why) {
  return why == Fallback::by_number || why == Fallback::behind || why == Fallback::past_end;
}

}  // namespace

FallbackLog::Reason FallbackLog::reason_of(Fallback why) {
  return {.why = why, .is_expected = is_expected(why)};
}

FallbackLog::Reason FallbackLog::reason_of(const Error& error) {
  const Fallback why = error.code() == ErrorCode::no_memory       ? Fallback::no_memory
                       : error.code() == ErrorCode::not_supported ? Fallback::not_decoded
                                                                  : Fallback::failed;
  return {why, error.what()};
}

void FallbackLog::count(const View& view, const Reason& reason) {
  const auto why = static_cast<std::size_t>(reason.why);
  ++counts_[why];
  {
    const std::lock_guard lock(mutex_);
    if (!logged_.emplace(view.name(), reason.why).second) return;
  }
  const std::string text = "view '" + view.name() + "': a batch for a GPU comes from the host: " +
                           (reason.detail.empty() ? explanation(reason.why) : reason.detail) +
                           " (counted as '" + kNames[why] + "')";
  if (reason.is_expected)
    log_.info(text);
  else
    log_.warning(text);
}

FallbackLog::Counts FallbackLog::counts() const {
  Counts now{};
  for (std::size_t i = 0; i < now.size(); ++i) now[i] = counts_[i];
  return now;
}

}  // namespace batchfs::handoff
