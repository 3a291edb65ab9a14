#include "engine/store/cloud/retry_decision.h"

#include <algorithm>

#include <fmt/format.h>

namespace batchfs {

namespace {

/// The part of the time for all attempts in which a server that has answered counts as able to.
constexpr double kAlive = 0.2;
/// Seconds between attempts, at most, where a server asks for others sooner than that.
constexpr double kLongestSoon = 1;

/// Seconds between attempts, as the server wants or growing.
double delay(const RequestOptions& options, const RetryHistory& history,
             const AnswerFinding& finding, double jitter) {
  const double longest =
      std::min(options.longest_delay,
               options.first_delay * static_cast<double>(1ull << std::min(history.tried - 1, 30)));
  if (!finding.wait) return jitter * longest;
  // Jitter also here: other clients received the same number. A server that names 0 s must not be
  // asked without pause.
  return *finding.wait + jitter * std::min(longest, kLongestSoon);
}

Error with_reason(const Error& error, const std::string& reason) {
  return Error(error.code(), error.why() + reason);
}

}  // namespace

bool is_load_refusal(const RequestOptions& options, const AnswerFinding& finding,
                     std::int64_t last_answer, std::int64_t now) {
  const auto alive = static_cast<std::int64_t>(options.budget * kAlive * 1e9);
  return finding.is_refusal && last_answer != 0 && now - last_answer < alive;
}

RetryDecision decide_retry(const RequestOptions& options, const RetryHistory& history,
                           const AnswerFinding& finding, double jitter, std::int64_t now) {
  const Error& error = *finding.verdict.error;
  if (history.tried - history.refused <= options.retries) {
    const double seconds = std::min(delay(options, history, finding, jitter), 1e6);
    const std::int64_t at = now + static_cast<std::int64_t>(seconds * 1e9);
    if (at < history.deadline) return {at};
    if (finding.wait && history.tried == 1)
      return {0, with_reason(error, fmt::format("; it asks to wait for {:.0f} s", *finding.wait))};
  }
  const std::string tries = history.tried == 1 ? "once" : fmt::format("{} times", history.tried);
  return {0, with_reason(error, "; tried " + tries)};
}

}  // namespace batchfs
