#include "engine/view/samples/every.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace every_test {

using testing::ElementsAre;
using testing::HasSubstr;

struct Times {
  explicit Times(const std::vector<std::int32_t>& counts,
                 const std::string& units = "hours since 2000-01-01T03")
      : dataset(MemoryData().index("time", "<i4", counts, {{"units", units}}).dataset()),
        axis(*dataset, "time", Positions::range(0, static_cast<std::int64_t>(counts.size())), "p") {
  }
  std::vector<std::int64_t> starts(WindowSpec window, std::int64_t low = 0,
                                   std::int64_t high = 0) const {
    return *starts_every(window, *dataset, axis, {low, high});
  }
  std::string refusal(const WindowSpec& window) const {
    return error_of([&] { starts(window); }).why();
  }
  std::shared_ptr<const Dataset> dataset;
  TimeSteps axis;
};

WindowSpec every(const char* text, std::int64_t size = 1) {
  WindowSpec window{.dim = "time", .size = size};
  window.every = parse_duration(text);
  window.every_path = "window.time.every";
  window.origin_path = "window.time.origin";
  return window;
}

WindowSpec from(const char* origin, WindowSpec window) {
  window.origin = origin;
  return window;
}

TEST(Every, CountsFromTheDateOfTheUnits) {
  const Times times({0, 3, 6, 11, 12, 13, 18, 30});
  EXPECT_THAT(times.starts(every("6h")), ElementsAre(0, 2, 4, 6, 7));
  EXPECT_THAT(times.starts(from("2000-01-01", every("6h"))), ElementsAre(1));
  EXPECT_THAT(times.starts(from("2030-05-05T03", every("6h"))), ElementsAre(0, 2, 4, 6, 7));
  EXPECT_THAT(times.starts(from("first", every("4h"))), ElementsAre(0, 4));
  EXPECT_THAT(Times({5, 7, 9}).starts(from("first", every("4h"))), ElementsAre(0, 2));
  EXPECT_THAT(Times({18, 12, 9, 6, 0}).starts(every("6h")), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(Times({-12, -6, -5}).starts(every("6h")), ElementsAre(0, 1));
}

TEST(Every, LeavesOutWhatDoesNotFit) {
  const Times times({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_THAT(times.starts(every("3h", 2)), ElementsAre(0, 3, 6));
  EXPECT_THAT(times.starts(every("3h"), -1, 0), ElementsAre(3, 6, 9));
  EXPECT_THAT(times.starts(every("3h"), 0, 2), ElementsAre(0, 3, 6));
}

TEST(Every, OneWindowGoesOverTheEdge) {
  const Times times({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto padded = [](const char* text, std::int64_t size) {
    WindowSpec window = every(text, size);
    window.edge = WindowSpec::Edge::pad;
    return window;
  };
  EXPECT_THAT(times.starts(padded("2h", 4)), ElementsAre(0, 2, 4, 6));  // ends with the labels
  EXPECT_THAT(times.starts(padded("3h", 3)), ElementsAre(0, 3, 6, 9));
  EXPECT_THAT(times.starts(padded("2h", 5)), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(times.starts(padded("2h", 50)), ElementsAre(0));
}

TEST(Every, MonthsGoByTheCalendar) {
  const Times times({0, 31, 58, 59, 90, 120, 365}, "days since 2001-01-01");
  EXPECT_THAT(times.starts(every("1mo")), ElementsAre(0, 1, 3, 4, 5, 6));
  EXPECT_THAT(times.starts(every("2mo")), ElementsAre(0, 3, 5, 6));
  EXPECT_THAT(times.starts(every("1y")), ElementsAre(0, 6));
  EXPECT_THAT(times.starts(from("2000-12-31", every("1mo"))), ElementsAre(2));
}

TEST(Every, Refusals) {
  const Times times({1, 2, 4});
  EXPECT_EQ(times.refusal(every("6h")),
            "window.time.every: none of the 3 labels of 'time' lies a multiple of 6h after "
            "2000-01-01T03:00:00; they begin with 2000-01-01T04:00:00: \"origin\": \"first\" "
            "counts from it");
  EXPECT_THAT(times.refusal(every("2h", 9)),
              HasSubstr("no window of 9 that begins at a multiple of 2h fits"));
  EXPECT_THAT(times.refusal(from("soon", every("2h"))),
              HasSubstr("window.time.origin: 'soon' is not a date; write \"first\""));
  EXPECT_THAT(times.refusal(from("2001-02-29", every("2h"))),
              HasSubstr("is not a date of the calendar"));
}

}  // namespace every_test
}  // namespace batchfs
