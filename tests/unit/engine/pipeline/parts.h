#pragma once
// The parts of an engine, wired as the engine wires them, for tests of one part.

#include <cstdint>
#include <string>

#include "engine/pipeline/arrays/array_reads.h"
#include "engine/pipeline/batches/batch_assembler.h"
#include "engine/pipeline/read_ahead.h"
#include "tests/unit/engine/pipeline/fake_store.h"
#include "tests/unit/engine/pipeline/raw_format.h"

namespace batchfs {

struct Parts {
  explicit Parts(std::uint64_t memory = 64 << 20) : budget(memory) {}
  ~Parts() {
    data.store->open();
    table.stop();
    ticker.stop();
    scheduler.interrupt();
    queue.stop();
    waiters.stop();
    scheduler.wait();
    executor.stop();
  }

  BatchRequest request(std::int64_t batch) const { return {view, &format, 0, batch}; }

  FakeData data{10, 4, 6};  // chunks of 96 bytes
  const std::shared_ptr<const View> view = data.view(R"({"window": {"time": 1}, "batch": 4})");
  const std::shared_ptr<const Array> array = data.dataset->variable("v").array;
  RawTestFormat format;
  Log log;
  Counters counters;
  Budget budget;
  MemoryFiles files{false};
  Trace trace;
  Deliveries deliveries{trace, [this] { ++first_deliveries; }};
  int first_deliveries = 0;
  ChunkCache cache{counters};
  Prefetcher prefetcher;
  LookAhead look_ahead{cache, budget.limit()};
  KeptArrays kept{cache, budget.limit()};
  Executor executor{2};
  ChunkScheduler scheduler{executor, budget, cache, counters, trace, log};
  Ticker ticker{[this] {
    queue.serve();
    waiters.expire();
  }};
  Waiters waiters{UINT64_MAX, ticker, counters, log};
  BatchTable table{waiters, counters,
                   [this](const BatchRequest& of) { return prefetcher.wanted(of); }};
  Reclaimer reclaimer{budget, files, table, cache, scheduler};
  MemoryQueue queue{
      budget,
      ticker,
      UINT64_MAX,
      {.reserve = [this](std::uint64_t bytes) { return reclaimer.reserve_for_reader(bytes); },
       .is_at_work = [this] { return table.is_at_work(); }}};
  const BatchAssembler::Environment environment{table, waiters,   queue,    reclaimer,  budget,
                                                files, scheduler, executor, prefetcher, look_ahead,
                                                cache, kept,      counters, trace,      log};
  BatchAssembler assembler{environment};
  ReadAhead read_ahead{environment, assembler};
  int reads = 0;
  ArrayReads arrays{
      {waiters, queue, reclaimer, budget, files, scheduler, cache, deliveries, [this] { ++reads; }},
      200};
};

}  // namespace batchfs
