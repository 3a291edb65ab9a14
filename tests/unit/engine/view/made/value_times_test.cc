#include "engine/view/made/value_times.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace value_times_test {

using testing::HasSubstr;

ValueTimes times_of(const MemoryData& data, const TimeChoice& choice = {},
                    const Names& windows = {}, const Names& stored = {}) {
  const auto dataset = data.dataset();
  std::vector<const Variable*> variables;
  for (const std::string& name : stored) variables.push_back(&dataset->variable(name));
  return value_times(*dataset, choice, windows, variables);
}

std::string refusal(const MemoryData& data, const TimeChoice& choice = {},
                    const Names& windows = {}) {
  return error_of([&] { times_of(data, choice, windows); }).why();
}

MemoryData forecast(const std::string& start, const std::string& lead,
                    const Json& lead_attributes) {
  MemoryData data;
  data.declare("t", "<f4", {start, lead}, {2, 3}, {2, 3})
      .declare("analysis", "<f4", {start}, {2}, {2})
      .declare("orography", "<f4", {"x"}, {4}, {4})
      .index<std::int64_t>(start, "<i8", {0, 1}, {{"units", "days since 2000-01-01"}})
      .index<std::int64_t>(lead, "<i8", {0, 6, 12}, lead_attributes);
  return data;
}

TEST(ValueTimes, AreThoseOfTheWindow) {
  const MemoryData data =
      MemoryData()
          .index<std::int64_t>("time", "<i8", {0, 6}, {{"units", "hours since 2020-02-29"}})
          .index<std::int64_t>("other", "<i8", {0, 1}, {{"units", "days since 2000-01-01"}})
          .index<std::int64_t>("x", "<i8", {0, 1});
  EXPECT_EQ(times_of(data, {}, {"x", "time"}).dims, Names{"time"});
  EXPECT_EQ(times_of(data, {.time = "other"}, {"x"}).dims, Names{"other"});
  EXPECT_THAT(refusal(data, {.path = "p"}, {"x"}),
              HasSubstr("p: there are several dimensions of times: other, time"));
}

TEST(ValueTimes, OfAForecastAreStartAndLead) {
  const Json hours = {{"units", "hours"}}, none = Json::object();
  for (const auto& [lead, attributes] : std::vector<std::pair<std::string, Json>>{
           {"lead_time", hours},
           {"prediction_timedelta", hours},
           {"step", hours},
           {"tau", {{"units", "h"}, {"standard_name", "forecast_period"}}},
           {"tau", {{"units", "days"}, {"dtype", "timedelta64[ns]"}}}}) {
    const MemoryData data = forecast("init_time", lead, attributes);
    const Names both = {"init_time", lead};
    EXPECT_EQ(times_of(data, {}, {"init_time"}, {"t"}).dims, both) << lead;
    EXPECT_EQ(times_of(data, {.time = "init_time"}, {lead}, {"t"}).dims, both);
    EXPECT_EQ(times_of(data, {}, {"init_time"}, {"orography"}).dims, both);
    EXPECT_EQ(times_of(data, {}, {"init_time"}).dims, both);
    EXPECT_EQ(times_of(data, {}, {lead}, {"analysis"}).dims, Names{"init_time"});
    EXPECT_EQ(times_of(data, {.lead = ""}, {"init_time"}, {"t"}).dims, Names{"init_time"});
  }
  EXPECT_EQ(times_of(forecast("time", "x2", hours), {}, {"time"}, {"t"}).dims, Names{"time"});
  EXPECT_EQ(times_of(forecast("time", "x2", hours), {.lead = "x2"}, {"time"}, {"t"}).dims,
            (Names{"time", "x2"}));
  EXPECT_EQ(times_of(forecast("valid_time", "lead", hours), {}, {}, {"t"}).dims,
            Names{"valid_time"});
  const Names wind = {"wind"};
  EXPECT_EQ(times_of(forecast("time", "wind", none), {}, {"time"}, {"t"}).dims, Names{"time"});
}

TEST(ValueTimes, OfLeadsWithoutLengthAreThoseOfValidTime) {
  MemoryData data = forecast("time", "step", Json::object());
  EXPECT_EQ(
      refusal(data, {.path = "p"}),
      "p: the times are those of 'time' plus the lead times of 'step', which are int64 without "
      "units, not lengths of time: it needs units as \"hours\", or the store a coordinate "
      "valid_time along both; \"lead\": false takes 'time' alone");
  data.add<std::int64_t>("valid_time", "<i8", {"step", "time"}, {3, 2}, {0, 1, 2, 3, 4, 5},
                         {{"units", "days since 2000-01-01"}});
  EXPECT_EQ(times_of(data), (ValueTimes{{"step", "time"}, "valid_time"}));
  EXPECT_THAT(refusal(forecast("time", "step", {{"units", "K"}})), HasSubstr("are int64 in 'K'"));
}

TEST(ValueTimes, CanBeNamed) {
  MemoryData data = forecast("time", "step", {{"units", "hours"}});
  data.add<std::int64_t>("when", "<i8", {"time", "step"}, {2, 3}, {0, 1, 2, 3, 4, 5},
                         {{"units", "days since 2000-01-01"}});
  EXPECT_EQ(times_of(data, {.time = "when"}), (ValueTimes{{"time", "step"}, "when"}));
  EXPECT_THAT(refusal(data, {.time = "t", .path = "p"}), HasSubstr("p: time: 't' is float32"));
  EXPECT_THAT(refusal(data, {.time = "whan", .path = "p"}), HasSubstr("p.time: "));
  EXPECT_THAT(refusal(data, {.lead = "setp", .path = "p"}),
              HasSubstr("lead: 'setp' is not a dimension of lead times"));
}

TEST(ValueTimes, OfOneForecastAreItsValidTimes) {
  MemoryData data;
  EXPECT_THAT(refusal(data), HasSubstr("no dimension has a coordinate of times"));
  data.index<std::int64_t>("step", "<i8", {0, 1}, {{"units", "hours"}})
      .add<std::int64_t>("valid_time", "<i8", {"step"}, {2}, {0, 1},
                         {{"units", "days since 2000-01-01"}});
  EXPECT_EQ(times_of(data), (ValueTimes{{"step"}, "valid_time"}));
}

}  // namespace value_times_test
}  // namespace batchfs
