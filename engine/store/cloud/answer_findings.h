#pragma once
// Classifies the answer to a job's request, or its failure.

#include <functional>
#include <optional>

#include "engine/store/cloud/object_service.h"

namespace batchfs {

/// Answers that only some requests may get.
struct ExpectedAnswers {
  bool range = false;      // 416: the object ends before this offset
  bool suffix = false;     // 400, 501: the server wants offsets
  bool condition = false;  // 304: not modified
};
ExpectedAnswers expected_answers(const HttpRequest& request);

struct AnswerFinding {
  Verdict verdict;
  std::optional<double> wait = {};  // seconds that the server asks for
  bool is_refusal = false;          // 429 or 503: the server has too many requests, or is down
};

/// `verify` as in ObjectRequests::Job; may be empty. A gateway's answers are good if they have an
/// object, and all others failed: the service does not see them.
AnswerFinding judge_answer(ObjectService& service,
                           const std::function<void(const HttpResponse&)>& verify,
                           const HttpResponse& response, const ExpectedAnswers& expected);
/// Without an answer.
AnswerFinding judge_failure(const std::exception_ptr& failure);

}  // namespace batchfs
