#include "engine/pipeline/chunks/reported_objects.h"

#include <string>

#include <gtest/gtest.h>

namespace batchfs {
namespace reported_objects_test {

TEST(ReportedObjects, EachIsNewOnce) {
  ReportedObjects reported;
  EXPECT_TRUE(reported.add("x/c/0"));
  EXPECT_TRUE(reported.add("x/c/1"));
  EXPECT_FALSE(reported.add("x/c/0"));
}

TEST(ReportedObjects, AreForgottenWhenThereAreTooMany) {
  ReportedObjects reported;
  for (std::size_t i = 0; i < ReportedObjects::kMaxObjects; ++i)
    EXPECT_TRUE(reported.add(std::to_string(i)));
  EXPECT_TRUE(reported.add("another"));
  EXPECT_TRUE(reported.add("0"));
}

}  // namespace reported_objects_test
}  // namespace batchfs
