// A thread that plans and runs batches by itself: nothing that it calls may wait.

#include <cstdint>
#include <functional>
#include <memory>
#include <semaphore>
#include <vector>

#include <gtest/gtest.h>

#include "engine/pipeline/executor.h"
#include "gpu/program/program_source.h"
#include "tests/unit/gpu/coded_data.h"
#include "tests/unit/gpu/held_store.h"

namespace batchfs::gpu {
namespace program_source_waits_test {

/// Where each tensor of a batch begins, one after the other.
std::vector<std::uint64_t> offsets_of(const View& view, std::int64_t batch, std::uint64_t& end) {
  std::vector<std::uint64_t> offsets;
  end = 0;
  const auto shapes = view.shapes(batch);
  for (std::size_t t = 0; t < shapes.size(); ++t) {
    offsets.push_back(end);
    end += static_cast<std::uint64_t>(element_count(shapes[t])) * view.tensors()[t].type.itemsize;
  }
  return offsets;
}

/// Runs all batches of an epoch on this thread, which waits only when nothing is to be done.
/// Staging memory has room for one part. Returns the bytes that went through it.
std::uint64_t run_without_waiting(const std::shared_ptr<const View>& view, std::uint64_t part,
                                  const std::function<void()>& unprepared) {
  const AssemblyTables tables(*view);
  std::uint64_t size = 0;
  offsets_of(*view, 0, size);
  AreaSizes sizes;
  sizes.staging = part;
  sizes.source = part + 4096;
  sizes.planes = sizes.literals = part;
  sizes.runs = part / 2;
  sizes.run_index = part;
  sizes.target = 1 << 20;
  sizes.batch = size;
  sizes.constants = tables.constants().size();
  HostRunner runner(sizes, tables.conversions(), tables.constants());
  std::counting_semaphore<> changed{0};
  ProgramCounters counters;
  Executor executor(2);
  const auto batches = static_cast<std::uint64_t>(view->batches());
  ProgramSource source(
      view, tables,
      [&](std::uint64_t place) {
        return place < batches ? std::optional(BatchNumber{0, static_cast<std::int64_t>(place)})
                               : std::nullopt;
      },
      {.sizes = sizes,
       .staging = runner.staging(),
       .part = part,
       .changed = [&] { changed.release(); }},
      executor, counters);
  for (std::uint64_t begun = 0, done = 0; done < batches;) {
    bool waits = true;
    if (begun < batches && !source.prepare(begun)) {
      unprepared();
    } else if (begun < batches) {
      const auto tensors = offsets_of(*view, static_cast<std::int64_t>(begun), size);
      EXPECT_TRUE(source.begin(begun++, 0, tensors));
      waits = false;
    }
    if (const auto program = source.try_next()) {
      if (const auto end = source.ended(program->header().number, runner.run(*program))) {
        EXPECT_EQ(end->why_failed, "");
        EXPECT_EQ(end->place, done++);
      }
      waits = false;
    }
    if (waits) changed.acquire();
  }
  source.stop();
  EXPECT_EQ(source.try_next(), nullptr);
  return counters.bytes_staged;
}

TEST(ProgramSourceWaits, NothingWaitsForRoomInStagingMemory) {
  MemoryData data = coded_data(20, 2, 20, 30);
  constexpr std::uint64_t kPart = 8 << 10;
  const auto view = View::parse(data.dataset(), kPairs, "v", "test");
  EXPECT_GT(run_without_waiting(view, kPart, [] {}), 2 * kPart);
}

TEST(ProgramSourceWaits, NothingWaitsForRemoteStores) {
  MemoryData data = coded_data(20, 2, 20, 30);
  const auto store = std::make_shared<HeldStore>(data.store);
  const auto dataset = std::make_shared<const Dataset>(store, data.hierarchy);
  run_without_waiting(View::parse(dataset, kPairs, "v", "test"), 64 << 10,
                      [&] { store->answer(); });
  EXPECT_GT(store->reads, 0);
}

}  // namespace program_source_waits_test
}  // namespace batchfs::gpu
