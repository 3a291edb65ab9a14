#include "engine/telemetry/trace_json.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/json_text.h"

namespace batchfs {
namespace trace_json_test {

Trace::Event span(Trace::Kind kind, std::uint64_t begin, std::uint64_t duration, Trace::Batch of) {
  Trace::Event event{.kind = kind, .begin = begin, .duration = duration, .bytes = 3, .of = of};
  return event;
}

TEST(TraceJson, IsOfTheTraceEventFormat) {
  Trace::Snapshot snapshot{{span(Trace::Kind::wait, 1'234'567, 2'000'089, {1, 0, 2, 3, 40})},
                           {"", "train"}};
  const Json trace = Json::parse(trace_json(snapshot, "batchfs store", 42));
  ASSERT_TRUE(trace.is_array());
  EXPECT_EQ(
      trace[0],
      Json::parse(
          R"({"name": "process_name", "ph": "M", "pid": 42, "tid": 0, "args": {"name": "batchfs store"}})"));
  EXPECT_EQ(
      trace[1],
      Json::parse(
          R"({"name": "wait", "cat": "batchfs", "ph": "X", "ts": 1234.567, "dur": 2000.089, "pid": 42,
    "tid": 1, "args": {"view": "train", "epoch": 3, "batch": 40, "rank": 0, "world": 2, "bytes": 3}})"));
  EXPECT_EQ(trace[2], Json::parse(R"({"name": "thread_name", "ph": "M", "pid": 42, "tid": 1,
    "args": {"name": "reader of train rank 0 of 2"}})"));
}

TEST(TraceJson, SpansThatOverlapAreInDifferentRows) {
  const Trace::Batch none;
  Trace::Snapshot snapshot{
      {span(Trace::Kind::fetch, 0, 10, none), span(Trace::Kind::fetch, 5, 10, none),
       span(Trace::Kind::decode, 6, 10, none), span(Trace::Kind::fetch, 10, 10, none)},
      {""}};
  std::map<std::int64_t, std::string> names;
  std::vector<std::string> rows;
  const Json trace = Json::parse(trace_json(snapshot, "", 1));
  for (const Json& event : trace)
    if (event["name"] == "thread_name")
      names[event["tid"].get<std::int64_t>()] = event["args"]["name"].get<std::string>();
  for (const Json& event : trace)
    if (event["ph"] == "X") rows.push_back(names[event["tid"].get<std::int64_t>()]);
  EXPECT_THAT(rows, testing::ElementsAre("fetch (1)", "fetch (2)", "decode", "fetch (1)"));
}

TEST(TraceJson, TellsHowItEndedAndOfWhichChunk) {
  Trace trace;
  trace.add({.kind = Trace::Kind::fetch, .end = Trace::End::failed, .begin = Trace::now()},
            "a\"b\xff\n", {1});
  const Json json = Json::parse(trace_json(trace.last(UINT64_MAX), "p\"\\", 1));
  EXPECT_EQ(json[1]["args"]["end"], "failed");
  EXPECT_EQ(json[1]["args"]["chunk"], "a\"b\xef\xbf\xbd\n/1");
  EXPECT_FALSE(json[1]["args"].contains("view"));  // a read of an array
}

TEST(TraceJson, OfNothing) { EXPECT_EQ(Json::parse(trace_json({{}, {""}}, "p", 1)).size(), 1u); }

}  // namespace trace_json_test
}  // namespace batchfs
