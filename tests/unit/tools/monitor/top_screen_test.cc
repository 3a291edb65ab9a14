#include "tools/monitor/top_screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace top_screen_test {

using testing::HasSubstr;

Activity busy(int readers) {
  Activity a;
  a.pid = 42;
  a.uptime = 3723;
  a.remote = true;
  a.received = 5 << 20;
  a.in_flight = 12;
  a.limit = 32;
  a.retries = 3;
  a.memory_used = 1 << 30;
  a.memory_budget = std::uint64_t{4} << 30;
  a.errors = 1;
  for (int r = 0; r < readers; ++r) {
    Activity::Reader reader;
    reader.view = "train";
    reader.format = "npy";
    reader.rank = r;
    reader.world = readers;
    reader.batch = 120;
    reader.epoch_batches = 1000;
    reader.batches = 12.34;
    reader.wait_share = 0.25;
    a.readers.push_back(reader);
  }
  return a;
}

TEST(TopScreen, ShowsReadersStoreMemoryAndErrors) {
  const std::vector<std::string> lines = top_screen(busy(2), "/mnt/era5", 0, 0);
  const std::string text = testing::PrintToString(lines);
  for (const char* part :
       {"/mnt/era5  up 1:02:03  pid 42", "5.0 MB/s", "in flight 12 of 32", "retries 3",
        "1.0 GB of 4.0 GB (25 %)", "Errors   1", "train (npy)", "1/2", "120/1000", "12.3", "25 %"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(TopScreen, ShowsSharedCaches) {
  Activity a = busy(1);
  a.shared_caches = true;
  a.via_requests = 40;
  a.via_fallbacks = 7;
  EXPECT_EQ(top_screen(a, "/mnt", 0, 0)[2],
            "Caches   0 B/s  40 requests/s  fallbacks 7  failures 0");
  a.via_hits = 0.5;
  EXPECT_THAT(top_screen(a, "/mnt", 0, 0)[2], HasSubstr("hits 50 %"));
}

TEST(TopScreen, FitsTheTerminal) {
  for (const auto& [columns, rows] : {std::pair{80, 24}, {20, 5}, {1, 1}, {300, 100}}) {
    const auto lines = top_screen(busy(40), "/mnt", static_cast<std::size_t>(columns),
                                  static_cast<std::size_t>(rows));
    EXPECT_LE(lines.size(), static_cast<std::size_t>(rows));
    for (const std::string& line : lines)
      EXPECT_LE(line.size(), static_cast<std::size_t>(columns)) << line;
  }
  EXPECT_THAT(top_screen(busy(40), "/mnt", 100, 24).back(),
              testing::MatchesRegex("and [0-9]+ more"));
}

TEST(TopScreen, LeavesOutWhatMattersLeastWhereThereIsNoRoom) {
  Activity a = busy(1);
  a.readers[0].idle = 4000;
  a.readers[0].bytes = 999e6;
  a.readers[0].failures = 7;
  const auto heading = [&a](std::size_t columns) {
    const auto lines = top_screen(a, "/mnt", columns, 24);
    EXPECT_EQ(lines.back().back(), '7') << columns;
    return lines[lines.size() - 2];
  };
  for (const char* name : {"EPOCH", "P50", "AHEAD", "IDLE"})
    EXPECT_THAT(heading(120), HasSubstr(name));
  EXPECT_THAT(heading(80), testing::Not(HasSubstr("IDLE")));
  for (const char* name : {"READER", "RANK", "BATCH/S", "RATE", "WAITS", "P99", "FAILED"})
    EXPECT_THAT(heading(80), HasSubstr(name));
}

TEST(TopScreen, NamesAreKeptOffTheTerminalsControlSequences) {
  Activity a = busy(1);
  a.readers[0].view = "\x1b[2Jevil\n";
  for (const std::string& line : top_screen(a, "/mnt/\x1b", 0, 0))
    for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
}

TEST(TopScreen, WithoutReaders) {
  EXPECT_THAT(top_screen({}, "/mnt", 80, 24).back(), HasSubstr("No batch was read yet"));
}

TEST(TopScreen, Durations) {
  EXPECT_EQ(duration_text(0), "0");
  EXPECT_EQ(duration_text(12e-6), "12 us");
  EXPECT_EQ(duration_text(2.44e-3), "2.4 ms");
  EXPECT_EQ(duration_text(0.25), "250 ms");
  EXPECT_EQ(duration_text(7.25), "7.2 s");
  EXPECT_EQ(duration_text(90), "90 s");
  EXPECT_EQ(duration_text(3700), "1:01:40");
  EXPECT_EQ(duration_text(90000), "1 d 1:00:00");
}

TEST(TopScreen, CutsWholeCharacters) {
  EXPECT_EQ(cut_to("température", 5), "tempé");
  EXPECT_EQ(cut_to("abc", 5), "abc");
  EXPECT_EQ(cut_to("abc", 0), "");
}

}  // namespace top_screen_test
}  // namespace batchfs
