#include "engine/zarr/revision_text.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace revision_text_test {

TEST(RevisionText, IsOneLine) {
  const Store::Revision revision{"1CECHNKREP0F1RSTCMT0", "branch main", 1'700'000'000'250'000,
                                 "two\nlines"};
  const std::string text = revision_text(revision);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_TRUE(text.starts_with(
      "snapshot 1CECHNKREP0F1RSTCMT0 of branch main, 2023-11-14T22:13:20.250000Z: two"));
  const Json json = revision_json(revision);
  EXPECT_EQ(json["snapshot"], revision.id);
  EXPECT_EQ(json["chosen_by"], "branch main");
  EXPECT_EQ(json["message"], "two\nlines");
  EXPECT_FALSE(revision_json({"x", "", 0, ""}).contains("chosen_by"));
}

TEST(RevisionText, TimesAreUtc) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_text(1'700'000'000'000'000), "2023-11-14T22:13:20Z");
  EXPECT_EQ(utc_text(UINT64_MAX), "18446744073709551615 us");
}

}  // namespace revision_text_test
}  // namespace batchfs
