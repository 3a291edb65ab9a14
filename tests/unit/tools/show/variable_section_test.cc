#include "tools/show/variable_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace variable_section_test {

using testing::HasSubstr;
using testing::Not;

TEST(VariableSection, SharesOfACount) {
  EXPECT_EQ(share_text(0, 10), "none");
  EXPECT_EQ(share_text(10, 10), "all 10");
  EXPECT_EQ(share_text(1234, 10'000), "1,234 (12.3 %)");
  EXPECT_EQ(share_text(1, 1'000'000), "1 (below 0.1 %)");
  EXPECT_EQ(share_text(999'999, 1'000'000), "999,999 (above 99.9 %)");
}

TEST(VariableSection, CoastlinesThatMapsShareAreInThePageOnce) {
  CoastSymbols coasts;
  EXPECT_EQ(coasts.html(), "");
  EXPECT_EQ(coasts.id_of("M0 0l1 1"), "coast1");
  EXPECT_EQ(coasts.id_of("M2 2l1 1"), "coast2");
  EXPECT_EQ(coasts.id_of("M0 0l1 1"), "coast1");
  EXPECT_THAT(coasts.html(), HasSubstr("<path id=\"coast1\" d=\"M0 0l1 1\"/>"));
}

TEST(VariableSection, HistogramsSayWhatABarIs) {
  SampleSummary summary;
  summary.count = 5;
  summary.min = 0;
  summary.max = 2;
  summary.histogram = {3, 2};
  const std::string picture = histogram_picture(summary, "<t>", "K");
  EXPECT_THAT(picture, HasSubstr("3 values from 0 to 1"));
  EXPECT_THAT(picture, HasSubstr("2 values from 1 to 2"));
  EXPECT_THAT(picture, HasSubstr("aria-label=\"Histogram of &lt;t&gt;, from 0 to 2\""));
  summary.max = 0;
  EXPECT_EQ(histogram_picture(summary, "t", ""), "");
}

TEST(VariableSection, SaysWhetherTheSampleIsTheWholeArray) {
  ArrayMetadata metadata;
  metadata.path = "t";
  metadata.shape = {2, 3};
  metadata.chunk_shape = {2, 3};
  InspectedArray array{};
  array.metadata = &metadata;
  ShownVariable variable;
  variable.array = &array;
  CoastSymbols coasts;
  variable.summary.count = 6;
  EXPECT_THAT(variable_section(variable, "a", coasts), HasSubstr("Of all values"));
  variable.summary.count = 3;
  EXPECT_THAT(variable_section(variable, "a", coasts),
              HasSubstr("Of the sample, not of the whole array"));
}

TEST(VariableSection, MissingChunksAreMarkedAndCounted) {
  ChunkPresence presence;
  presence.columns = 3;
  presence.rows = 1;
  presence.objects = 6;
  presence.is_known = true;
  presence.stored = 3;
  presence.all = {2, 2, 2};
  presence.found = {2, 1, 0};
  const std::string picture = presence_picture(presence, "time", "", false);
  for (const char* kind : {"class=\"stored\"", "class=\"some\"", "class=\"missing\""})
    EXPECT_THAT(picture, HasSubstr(kind));
  EXPECT_THAT(picture, HasSubstr("Stored: 3 of 6 chunks; missing: 3 (50.0 %)"));
  presence.found = presence.all;
  presence.stored = 6;
  EXPECT_THAT(presence_picture(presence, "time", "", true), HasSubstr("Stored: 6 of 6 shards."));
}

TEST(VariableSection, EscapesAllThatComesFromAStore) {
  const std::string evil = "</p><script>alert(1)</script>\" onload=\"x";
  ArrayMetadata metadata;
  metadata.path = evil;
  metadata.shape = {4, 4};
  metadata.chunk_shape = {2, 2};
  InspectedArray array{};
  array.metadata = &metadata;
  array.dims = {evil, evil + "2"};
  array.grid = ChunkGrid(metadata.shape, metadata.chunk_shape);
  ShownVariable variable;
  variable.array = &array;
  variable.path = variable.title = variable.units = variable.type = variable.position =
      variable.region = evil;
  variable.lines = variable.columns = {evil, evil, evil, evil};
  variable.summary.count = 1;
  variable.summary.max = 1;
  variable.summary.histogram = {1};
  PixelMeans means;
  means.least = 0;
  means.most = 1;
  variable.scale.emplace(means);
  variable.png.resize(3);
  variable.across = variable.down = 2;
  variable.presence.objects = 4;
  variable.presence.columns = variable.presence.rows = 1;
  variable.presence.is_known = true;
  variable.presence.all = {4};
  variable.presence.found = {0};
  CoastSymbols coasts;
  for (const std::string& why : {std::string(), evil}) {
    variable.why_not = why;
    const std::string section = variable_section(variable, "variable1", coasts);
    EXPECT_THAT(section, HasSubstr("&lt;script&gt;"));
    EXPECT_THAT(section, Not(HasSubstr("<script")));
    EXPECT_THAT(section, Not(HasSubstr("\" onload=\"")));
  }
}

}  // namespace variable_section_test
}  // namespace batchfs
