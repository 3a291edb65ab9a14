#include "engine/telemetry/trace.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace trace_test {

constexpr std::uint64_t kMinute = 60'000'000'000;

Trace::Event event(Trace::Kind kind, std::int64_t batch, std::uint64_t begin = Trace::now()) {
  return {.kind = kind,
          .begin = begin,
          .bytes = 7,
          .of = {.view = 0, .rank = 0, .world = 1, .batch = batch}};
}

TEST(Trace, KeepsWhatItIsTold) {
  Trace trace;
  const std::uint32_t train = trace.name("train");
  const std::uint64_t began = Trace::now() - 5'000;
  trace.add({.kind = Trace::Kind::decode, .begin = began, .bytes = 12, .of = {train, 2, 4, 1, 9}},
            "t2m", {3, 0, 11});
  trace.add({.kind = Trace::Kind::wait,
             .end = Trace::End::failed,
             .begin = began + 1,
             .of = {train, 2, 4, 1, 9}});
  const Trace::Snapshot snapshot = trace.last(kMinute);
  ASSERT_EQ(snapshot.events.size(), 2u);
  const Trace::Event& decode = snapshot.events[0];
  EXPECT_EQ(decode.kind, Trace::Kind::decode);
  EXPECT_EQ(decode.end, Trace::End::done);
  EXPECT_EQ(decode.begin, began);
  EXPECT_GE(decode.duration, 5'000u);
  EXPECT_EQ(decode.bytes, 12u);
  EXPECT_EQ(decode.chunk(), "t2m/3.0.11");
  EXPECT_EQ(snapshot.names[decode.of.view], "train");
  EXPECT_EQ(decode.of.rank, 2);
  EXPECT_EQ(decode.of.world, 4);
  EXPECT_EQ(decode.of.epoch, 1);
  EXPECT_EQ(decode.of.batch, 9);
  EXPECT_EQ(snapshot.events[1].end, Trace::End::failed);
  EXPECT_EQ(snapshot.events[1].chunk(), "");
}

TEST(Trace, NamesAreNumberedOnce) {
  Trace trace;
  EXPECT_EQ(trace.name(""), 0u);
  EXPECT_EQ(trace.name("a"), trace.name("a"));
  EXPECT_NE(trace.name("a"), trace.name("b"));
  for (int i = 0; i < 10'000; ++i) trace.name(std::to_string(i));  // invented names get no memory
  EXPECT_EQ(trace.name("one more"), 0u);
  EXPECT_LE(trace.last(kMinute).names.size(), 4096u);
}

TEST(Trace, ChunksOfAnyNameFit) {
  Trace trace;
  const std::string path(1000, 'p');
  trace.add(event(Trace::Kind::fetch, 0), path, {1, 2});
  trace.add(event(Trace::Kind::fetch, 1), "", {});
  trace.add(event(Trace::Kind::fetch, 2), "scalar", {});
  Dims many;
  for (int d = 0; d < kMaxDims; ++d) many.push_back(INT64_MAX);
  trace.add(event(Trace::Kind::fetch, 3), path, many);
  std::vector<Trace::Event> events = trace.last(kMinute).events;
  ASSERT_EQ(events.size(), 4u);
  EXPECT_THAT(std::string(events[0].chunk()), testing::MatchesRegex("p{60,70}/1.2"));
  EXPECT_EQ(events[1].chunk(), "0");
  EXPECT_EQ(events[2].chunk(), "scalar/0");
  EXPECT_THAT(std::string(events[3].chunk()),
              testing::HasSubstr("9223372036854775807.9223372036854775807"));
}

TEST(Trace, ForgetsTheOldestOfItsKind) {
  Trace trace(64 << 10);
  trace.add(event(Trace::Kind::wait, -1));
  for (int i = 0; i < 10'000; ++i) trace.add(event(Trace::Kind::decode, i), "t", {i});
  const Trace::Snapshot snapshot = trace.last(kMinute);
  EXPECT_LE(snapshot.events.size() * sizeof(Trace::Event), 64u << 10);
  std::vector<std::int64_t> chunks, waits;
  for (const Trace::Event& e : snapshot.events)
    (e.kind == Trace::Kind::wait ? waits : chunks).push_back(e.of.batch);
  EXPECT_THAT(waits, testing::ElementsAre(-1));  // however many chunks there are
  ASSERT_FALSE(chunks.empty());
  EXPECT_EQ(chunks.back(), 9'999);
  // Without gaps, though each processor has its own ring.
  for (std::size_t i = 0; i < chunks.size(); ++i)
    EXPECT_EQ(chunks[i], chunks[0] + static_cast<std::int64_t>(i));
}

TEST(Trace, GivesOnlyWhatEndedLately) {
  Trace trace;
  trace.add(event(Trace::Kind::wait, 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_TRUE(trace.last(1'000'000).events.empty());
  EXPECT_EQ(trace.last(kMinute).events.size(), 1u);
  EXPECT_EQ(trace.last(UINT64_MAX).events.size(), 1u);
}

TEST(Trace, ManyThreadsAndAReader) {
  Trace trace(256 << 10);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&trace, t] {
      for (int i = 0; i < 5'000; ++i) {
        const std::uint32_t view = trace.name("view " + std::to_string(i % 10));
        trace.add({.kind = Trace::Kind::decode,
                   .begin = Trace::now(),
                   .bytes = 1,
                   .of = {view, t, 4, 0, i}},
                  "a", {i});
      }
    });
  for (int i = 0; i < 20; ++i)
    for (const Trace::Snapshot snapshot = trace.last(kMinute);
         const Trace::Event& e : snapshot.events) {
      ASSERT_EQ(snapshot.names.at(e.of.view), "view " + std::to_string(e.of.batch % 10));
      ASSERT_EQ(e.chunk(), "a/" + std::to_string(e.of.batch));
    }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace trace_test
}  // namespace batchfs
