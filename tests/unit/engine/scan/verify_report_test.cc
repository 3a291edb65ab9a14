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
  for (int i = 0; i < 5; ++i) collector.add_array(std::uint64_t{1} << 62, 0);
  EXPECT_EQ(collector.report().missing_chunks, UINT64_MAX);
}

TEST(VerifyReport, TasksComeToTheReportOfOneScan) {
  std::vector<VerifyReport> reports;
  for (int task = 0; task < 2; ++task) {
    VerifyCollector collector(10);
    collector.add_array(100, task == 0 ? 30 : 50);
    collector.add_object(10);
    collector.add_chunks(3, 40);
    collector.find({"a", task == 0 ? "2.0" : "1.0", "key", damage::kData, "why"});
    collector.find({"b", "", "b", damage::kUnreadable, "cannot be listed"});  // both see it
    collector.note(task == 0 ? "z" : "y", "odd");
    reports.push_back(collector.report());
  }
  const VerifyReport merged = merge_reports(reports, 10);
  EXPECT_EQ(merged.arrays, 1u);
  EXPECT_EQ(merged.missing_chunks, 20u);
  EXPECT_EQ(merged.objects, 2u);
  EXPECT_EQ(merged.stored_bytes, 20u);
  EXPECT_EQ(merged.decoded_bytes, 80u);
  EXPECT_EQ(merged.problems, 3u);
  ASSERT_EQ(merged.findings.size(), 3u);
  EXPECT_EQ(merged.findings[0].chunk, "1.0");
  EXPECT_EQ(merged.notes[0].key, "y");
  EXPECT_EQ(merge_reports(reports, 2).findings.size(), 2u);
}

}  // namespace verify_report_test
}  // namespace batchfs
