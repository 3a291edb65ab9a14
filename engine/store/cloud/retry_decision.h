#pragma once
// Whether and when a request that met passing trouble is sent again.
//
// Attempts are limited by number and by time. A server that refuses requests because it has too
// many (429, 503), and answers others meanwhile, is not in trouble: its refusals are limited by
// time only.

#include <cstdint>
#include <optional>

#include "engine/store/cloud/answer_findings.h"
#include "engine/store/cloud/object_requests.h"

namespace batchfs {

/// Times are nanoseconds of the steady clock.
struct RetryHistory {
  int tried = 0;              // attempts
  int refused = 0;            // of these: by a server that answered other requests
  std::int64_t deadline = 0;  // no attempt starts later
};

struct RetryDecision {
  std::int64_t at = 0;              // when to try again
  std::optional<Error> error = {};  // set: it does not help to try again
};

/// Did the server refuse the request while it answered others? `last_answer`: when it last did; 0:
/// never.
bool is_load_refusal(const RequestOptions& options, const AnswerFinding& finding,
                     std::int64_t last_answer, std::int64_t now);

/// `finding` is the last attempt's, a Verdict::retry; `jitter`: a random number from 0 to 1.
RetryDecision decide_retry(const RequestOptions& options, const RetryHistory& history,
                           const AnswerFinding& finding, double jitter, std::int64_t now);

}  // namespace batchfs
