#include "engine/scan/verify_report.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace verify_report_test {

TEST(VerifyReport, ListsAreBoundedAndSorted) {
  VerifyCollector collector(3);
  for (const char* chunk : {"10.0", "9.1", "9.0", "1.0"})
    collector.find({"a", chunk, "key", damage::kData, "why"});
  for (const char* key : {"z", "y"}) collector.note(key, "odd");
  const VerifyReport report = collector.report();
  EXPECT_EQ(report.problems, 4u);
  ASSERT_EQ(report.findings.size(), 3u);
  EXPECT_EQ(report.findings[0].chunk, "9.0");
  EXPECT_EQ(report.findings[2].chunk, "10.0");
  EXPECT_EQ(report.notes[0].key, "y");
  EXPECT_EQ(report.note_count, 2u);
}

TEST(VerifyReport, SumsOfHostileGridsDoNotWrap) {
  VerifyCollector collector(1);
  for (int i = 0; i < 5; ++i) collector.add_array(std::uint64_t{1} << 62);
  EXPECT_EQ(collector.report().missing_chunks, UINT64_MAX);
}

}  // namespace verify_report_test
}  // namespace batchfs
