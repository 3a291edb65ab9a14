#include "tools/monitor/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace report_page_test {

using testing::HasSubstr;
using testing::Not;

Report sample() {
  Report report;
  report.place = "/mnt/<era5>";
  report.store = "s3://a&b";
  report.made = "today";
  report.timeline.seconds = 10;
  Timeline::Reader reader{"<script>alert(1)</script>", 0, 1, {}};
  for (int i = 0; i < 5000; ++i)
    reader.gets.push_back({{i * 0.002, i * 0.002 + 0.0005}, i * 0.002 + 0.002, 0, i, 100, i == 3});
  report.timeline.readers = {reader};
  report.timeline.decodes = {{0, 5}, {1, 2}};
  report.timeline.fetches = {{0, 1}};
  Activity::Reader active;
  active.view = reader.view;
  active.format = "npy";
  report.activity.readers = {active};
  report.advice = {"Use <less>."};
  return report;
}

TEST(ReportPage, HoldsPicturesFiguresAndAdvice) {
  const std::string page = report_page(sample());
  for (const char* part :
       {"<!DOCTYPE html>", "/mnt/&lt;era5&gt;", "s3://a&amp;b", "Use &lt;less&gt;.",
        "class=\"wait\"", "class=\"use\"", "epoch 0 batch 4999: waited 500 us, used 1.5 ms",
        "<polygon class=\"decode\"", "</html>"})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  for (const char* elsewhere : {"http:", "https:", "src=", "url("})
    EXPECT_THAT(page, Not(HasSubstr(elsewhere)));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_LT(page.size(), 2u << 20);  // of many batches the last
}

TEST(ReportPage, ShowsSharedCaches) {
  Report report = sample();
  EXPECT_THAT(report_page(report), Not(HasSubstr("shared caches")));
  report.activity.shared_caches = true;
  report.activity.via_hits = 0.75;
  report.activity.via_fallbacks = 12;
  EXPECT_THAT(report_page(report),
              HasSubstr("Through shared caches</td><td class=\"n\">0/s, 0 B/s, 75 % hits, 12 asked "
                        "of the store instead, 0 failed"));
}

TEST(ReportPage, MarksReadersThatAreIdle) {
  Report report = sample();
  EXPECT_THAT(report_page(report), Not(HasSubstr("idle for")));
  EXPECT_THAT(report_page(report), Not(HasSubstr("rect class=\"idle\"")));
  report.activity.readers[0].idle = 300;
  report.timeline.seconds = 60;
  report.timeline.readers[0].gets.back().used_until = -1;
  const std::string page = report_page(report);
  EXPECT_THAT(page, HasSubstr("<tr class=\"idle\">"));
  EXPECT_THAT(page, HasSubstr("idle for 0:05:00"));
  EXPECT_THAT(page, HasSubstr("rect class=\"idle\""));
}

TEST(ReportPage, FitsAPhone) {
  const std::string page = report_page(sample());
  EXPECT_THAT(page, HasSubstr("name=\"viewport\" content=\"width=device-width"));
  EXPECT_THAT(page, HasSubstr("<div class=\"wide\"><svg"));
  EXPECT_THAT(page, HasSubstr("<div class=\"wide\"><table"));
}

TEST(ReportPage, TicksAreRound) {
  const std::string page = report_page(sample());
  for (const char* tick : {">0</text>", ">2 s</text>", ">10 s</text>"})
    EXPECT_THAT(page, HasSubstr(tick));
}

TEST(ReportPage, OfNothing) {
  const std::string page = report_page({});
  EXPECT_THAT(page, HasSubstr("Nothing was read"));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("inf")));
}

}  // namespace report_page_test
}  // namespace batchfs
