#include "engine/store/cloud/answer_findings.h"

#include <gtest/gtest.h>

#include "engine/store/cloud/http_store.h"
#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {

namespace answer_findings_test {

struct AnswerFindingsTest : testing::Test {
  HttpService service{"http://host", std::make_shared<HttpClient>()};

  AnswerFinding judge(int status, bool from_gateway = false, ExpectedAnswers expected = {},
                      const std::function<void(const HttpResponse&)>& verify = {}) {
    HttpResponse response = FakeStoreEnvironment::answer(status, "body", {{"retry-after", "7"}});
    response.from_gateway = from_gateway;
    return judge_answer(service, verify, response, expected);
  }
};

TEST_F(AnswerFindingsTest, TheServiceClassifies) {
  EXPECT_EQ(judge(200).verdict.kind, Verdict::ok);
  EXPECT_EQ(judge(404).verdict.kind, Verdict::missing);
  EXPECT_EQ(judge(503).verdict.kind, Verdict::retry);
  EXPECT_EQ(judge(503).wait, 7);
  EXPECT_EQ(judge(403).verdict.kind, Verdict::failed);
}

TEST_F(AnswerFindingsTest, SomeAnswersAreExpected) {
  EXPECT_NE(judge(304).verdict.kind, Verdict::ok);
  EXPECT_EQ(judge(304, false, {.condition = true}).verdict.kind, Verdict::ok);
  EXPECT_NE(judge(416).verdict.kind, Verdict::ok);
  EXPECT_EQ(judge(416, false, {.range = true}).verdict.kind, Verdict::ok);
  HttpRequest request;
  EXPECT_FALSE(expected_answers(request).range || expected_answers(request).condition);
  request.range = ByteRange{0, 4};
  request.headers = {{"If-None-Match", "\"1\""}};
  EXPECT_TRUE(expected_answers(request).range && expected_answers(request).condition);
}

TEST_F(AnswerFindingsTest, BrokenOnesAreAskedForAgain) {
  const auto broken = [](const HttpResponse&) { throw Error(ErrorCode::io, "incomplete"); };
  EXPECT_EQ(judge(200, false, {}, broken).verdict.kind, Verdict::retry);
  const auto wrong = [](const HttpResponse&) { throw Error(ErrorCode::corrupt, "a web page"); };
  EXPECT_EQ(judge(200, false, {}, wrong).verdict.kind, Verdict::failed);
}

TEST_F(AnswerFindingsTest, OfAGatewayOnlyObjectsAreGood) {
  EXPECT_EQ(judge(200, true).verdict.kind, Verdict::ok);
  EXPECT_EQ(judge(206, true).verdict.kind, Verdict::ok);
  for (const int status : {204, 301, 304, 403, 404, 416, 500})
    EXPECT_TRUE(judge(status, true, {true, true}).verdict.error) << status;
}

}  // namespace answer_findings_test

}  // namespace batchfs
