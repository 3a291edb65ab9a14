#include "engine/scan/verify_part.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace verify_part_test {

TEST(VerifyPart, KeepsTheReport) {
  VerifyCollector collector(10);
  collector.add_array(UINT64_MAX, 7);
  collector.add_object(11);
  collector.add_chunks(3, 40);
  collector.find({"a", "2.0", "a/c/2/0", damage::kData, "why"});
  collector.note("x", "odd");
  collector.not_checked("b", "unknown codec");
  const VerifyReport report = collector.report();
  const Json json = verify_part(report);
  const VerifyReport read = parse_verify_part(JsonRef(json, "part"));
  EXPECT_EQ(read.arrays, 1u);
  EXPECT_EQ(read.selected_chunks, UINT64_MAX);
  EXPECT_EQ(read.known_chunks, 7u);
  EXPECT_EQ(read.objects, 1u);
  EXPECT_EQ(read.chunks, 3u);
  EXPECT_EQ(read.stored_bytes, 11u);
  EXPECT_EQ(read.decoded_bytes, 40u);
  EXPECT_EQ(read.problems, 1u);
  EXPECT_EQ(read.findings, report.findings);
  EXPECT_EQ(read.note_count, 1u);
  EXPECT_EQ(read.notes[0].why, "odd");
  EXPECT_EQ(read.not_checked[0].key, "b");
}

TEST(VerifyPart, OtherJsonIsRefused) {
  const Json good = verify_part({});
  for (const char* patch :
       {R"({"counters": 1})", R"({"counters": {"chunks": "1"}})", R"({"counters": {"chunks": -1}})",
        R"({"findings": [["a"]]})", R"({"notes": [["a", 1]]})", R"({"not_checked": null})"}) {
    Json bad = good;
    bad.merge_patch(Json::parse(patch));
    EXPECT_THROW(parse_verify_part(JsonRef(bad, "part")), Error) << patch;
  }
}

}  // namespace verify_part_test
}  // namespace batchfs
