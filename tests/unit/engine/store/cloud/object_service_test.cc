#include "engine/store/cloud/object_service.h"

#include <gtest/gtest.h>

namespace batchfs {

namespace object_service_test {

Verdict verdict(int status) {
  HttpResponse response;
  response.status = status;
  return classify_status(response);
}

TEST(ClassifyStatus, SaysWhatAnAnswerMeans) {
  for (const int status : {200, 206}) EXPECT_EQ(verdict(status).kind, Verdict::ok);
  for (const int status : {404, 410}) EXPECT_EQ(verdict(status).kind, Verdict::missing);
  for (const int status : {408, 425, 429, 500, 502, 503, 504}) {
    EXPECT_EQ(verdict(status).kind, Verdict::retry) << status;
    EXPECT_EQ(verdict(status).error->code(), ErrorCode::io);
  }
  for (const int status : {401, 403})
    EXPECT_EQ(verdict(status).error->code(), ErrorCode::access_denied);
  EXPECT_EQ(verdict(412).error->code(), ErrorCode::stale);
  for (const int status : {0, 301, 304, 400, 405, 418, 451, 501, 505}) {
    EXPECT_EQ(verdict(status).kind, Verdict::failed) << status;
    EXPECT_EQ(verdict(status).error->code(), ErrorCode::io);
    EXPECT_NE(verdict(status).error->why().find(std::to_string(status)), std::string::npos);
  }
}

}  // namespace object_service_test

}  // namespace batchfs
