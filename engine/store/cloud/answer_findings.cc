#include "engine/store/cloud/answer_findings.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/store/http/response_checks.h"

namespace batchfs {

ExpectedAnswers expected_answers(const HttpRequest& request) {
  const bool is_conditional =
      std::any_of(request.headers.begin(), request.headers.end(), [](const auto& header) {
        return header.first == "If-None-Match" || header.first == "If-Modified-Since";
      });
  const bool has_range = request.range.has_value() && request.asks_for_range;
  return {has_range, has_range && request.range->from_end, is_conditional};
}

AnswerFinding judge_answer(ObjectService& service,
                           const std::function<void(const HttpResponse&)>& verify,
                           const HttpResponse& response, const ExpectedAnswers& expected) {
  try {
    if (response.from_gateway && response.status != 200 && response.status != 206)
      throw Error(ErrorCode::io, fmt::format("it answers with status {}", response.status));
    Verdict verdict;
    const bool is_answer = (response.status == 416 && expected.range) ||
                           (response.status == 304 && expected.condition);
    if (!is_answer) verdict = service.classify(response);
    if (verdict.kind == Verdict::failed && expected.suffix && may_refuse_range(response.status))
      verdict = {};
    if (verdict.kind == Verdict::ok && verify) verify(response);
    if (verdict.kind != Verdict::retry) return {verdict};
    const bool is_refusal = response.status == 429 || response.status == 503;
    return {verdict, retry_after(response), is_refusal};
  } catch (...) {
    return judge_failure(std::current_exception());
  }
}

AnswerFinding judge_failure(const std::exception_ptr& failure) {
  Error error = error_of(failure);
  const bool may_pass = error.code() == ErrorCode::io || error.code() == ErrorCode::timed_out;
  return {{may_pass ? Verdict::retry : Verdict::failed, std::move(error)}};
}

}  // namespace batchfs
