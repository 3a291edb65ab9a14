// Trace events of batches that programs make.

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "engine/telemetry/trace.h"
#include "gpu/program/program_source.h"
#include "tests/unit/gpu/coded_data.h"

namespace batchfs::gpu {
namespace program_trace_test {

constexpr std::uint64_t kPart = 64 << 10;

/// Makes one batch after another, as rank 1 of 2 of epoch 3, and reports that its programs have
/// ended.
void run(const std::shared_ptr<const View>& view, Trace& trace, std::uint64_t batches) {
  const AssemblyTables tables(*view);
  AreaSizes sizes;
  sizes.staging = 3 * kPart;
  sizes.source = kPart + 4096;
  sizes.planes = sizes.literals = sizes.run_index = kPart;
  sizes.runs = kPart / 2;
  sizes.target = 2 << 20;
  sizes.batch = 8 << 20;
  sizes.constants = tables.constants().size();
  HostRunner runner(sizes, tables.conversions(), tables.constants());
  ProgramCounters counters;
  Executor executor(2);
  ProgramSource source(
      view, tables,
      [&](std::uint64_t place) {
        return place < batches
                   ? std::optional(BatchNumber{3, static_cast<std::int64_t>(2 * place + 1)})
                   : std::nullopt;
      },
      {sizes, runner.staging(), kPart, 1, 2, &trace}, executor, counters);
  for (std::uint64_t place = 0; place < batches; ++place) {
    std::vector<std::uint64_t> tensors;
    std::uint64_t at = 0;
    for (std::size_t t = 0;
         const Dims& shape : view->shapes(static_cast<std::int64_t>(2 * place + 1))) {
      tensors.push_back(at);
      at += static_cast<std::uint64_t>(element_count(shape)) * view->tensors()[t++].type.itemsize;
    }
    ASSERT_TRUE(source.begin(place, 0, tensors));
    for (bool ended = false; !ended;) {
      const auto program = source.next();
      ASSERT_NE(program, nullptr);
      ended = source.ended(program->header().number, runner.run(*program)).has_value();
    }
  }
}

TEST(ProgramTrace, EachBatchIsPutTogetherOnceAndItsChunksAreFetchedAndDecodedBeforeThat) {
  const MemoryData data = coded_data(40, 1, 40, 50);
  const auto view = View::parse(
      data.dataset(), R"({"variables": ["v2"], "window": {"time": 1}, "batch": 4})", "v", "test");
  Trace trace;
  run(view, trace, 3);
  const Trace::Snapshot snapshot = trace.last(~std::uint64_t{0} / 2);
  std::map<std::int64_t, std::map<Trace::Kind, std::vector<Trace::Event>>> batches;
  for (const Trace::Event& event : snapshot.events) {
    EXPECT_EQ(snapshot.names.at(event.of.view), view->name());
    EXPECT_EQ(event.of.rank, 1);
    EXPECT_EQ(event.of.world, 2);
    EXPECT_EQ(event.of.epoch, 3);
    EXPECT_EQ(event.end, Trace::End::done);
    batches[event.of.batch][event.kind].push_back(event);
  }
  ASSERT_EQ(batches.size(), 3u);
  for (const std::int64_t number : {1, 3, 5}) {
    auto& kinds = batches.at(number);
    ASSERT_EQ(kinds[Trace::Kind::assemble].size(), 1u) << number;
    const Trace::Event& whole = kinds[Trace::Kind::assemble].front();
    EXPECT_TRUE(whole.chunk().empty());
    std::uint64_t bytes = 0;
    for (std::size_t t = 0; const Dims& shape : view->shapes(number))
      bytes +=
          static_cast<std::uint64_t>(element_count(shape)) * view->tensors()[t++].type.itemsize;
    EXPECT_EQ(whole.bytes, bytes);
    ASSERT_FALSE(kinds[Trace::Kind::fetch].empty()) << number;
    EXPECT_EQ(kinds[Trace::Kind::fetch].size(), kinds[Trace::Kind::decode].size());
    for (const Trace::Kind kind : {Trace::Kind::fetch, Trace::Kind::decode})
      for (const Trace::Event& event : kinds[kind]) {
        EXPECT_EQ(event.chunk().substr(0, 3), "v2/");
        EXPECT_GE(event.begin, whole.begin);
        EXPECT_LE(event.begin + event.duration, whole.begin + whole.duration);
        EXPECT_GT(event.bytes, 0u);
      }
  }
}

TEST(ProgramTrace, ABatchThatFailsIsSaidToHaveFailed) {
  MemoryData data = coded_data(16, 1, 40, 50);
  data.store->objects["v2/3.0.0"].resize(900);
  const auto view = View::parse(
      data.dataset(), R"({"variables": ["v2"], "window": {"time": 1}, "batch": 2})", "v", "test");
  Trace trace;
  run(view, trace, 3);
  std::set<std::int64_t> failed;
  for (const Trace::Event& event : trace.last(~std::uint64_t{0} / 2).events)
    if (event.kind == Trace::Kind::assemble && event.end == Trace::End::failed)
      failed.insert(event.of.batch);
  EXPECT_EQ(failed, std::set<std::int64_t>{1});
}

}  // namespace program_trace_test
}  // namespace batchfs::gpu
