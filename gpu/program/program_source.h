#pragma once
// Makes the programs of a view's batches: tracks which chunks are on the device, reads the stored
// bytes of the others into staging memory, several batches ahead, and plans their decoding and
// assembly. Touches no device: the process that runs the programs, this one or another, has the
// same areas and reports when programs have ended.
//
//   ProgramSource source(view, tables, sequence, options, executor, counters);
//   // One thread at a time, in order; prepare() is false until `options.changed` is called.
//   if (source.prepare(place)) source.begin(place, slot, tensors);
//   // Another thread: programs by number, as soon as they are complete; or try_next().
//   while (std::shared_ptr<const Program> program = source.next()) { ... }
//   // Another thread, in order: the result of a program.
//   source.ended(number, statuses);
//
// The trace records for each program how long its stored bytes were read (fetch) and the time from
// when next() returned it until it ended (decode: copy, decoding, and its share of the assembly),
// and for each batch the total time (assemble).
//
// A chunk that the GPU does not decode is decoded by the CPU into staging: the first chunk of each
// variable decides. If another chunk turns out to need the CPU after it was read, or the device
// refuses it, the batch fails here, and the engine assembles it instead.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/pipeline/executor.h"
#include "engine/telemetry/counters.h"
#include "engine/telemetry/trace.h"
#include "engine/view/view.h"
#include "gpu/program/assembly_plan.h"
#include "gpu/program/chunk_arena.h"
#include "gpu/program/program.h"
#include "gpu/program/program_part.h"
#include "gpu/program/remote_fetches.h"
#include "gpu/program/staging_ring.h"

namespace batchfs::gpu {

/// Thread-safe as said above.
class ProgramSource {
 public:
  struct Options {
    AreaSizes sizes;
    std::byte* staging = nullptr;
    std::uint64_t part =
        64 << 20;  // most bytes, stored and decoded, of a program: sizes.source at most
    std::int64_t rank = 0, world = 1;  // for the trace, as which the sequence is read
    Trace* trace = nullptr;            // may be null
    Counters* counters = nullptr;      // of all that the process reads; may be null
    /// Called when prepare() or try_next() may return something else, by any thread and perhaps with
    /// locks held. Calls none of this. May be empty.
    std::function<void()> changed = {};
    /// Memory of the engine's budget: of the plan of a batch, and of chunks of remote stores.
    PlanLimit plan = {};
    RemoteFetches::Memory fetched = {};
  };
  /// Which batch comes at a place of the stream; nullopt at its end.
  using Sequence = std::function<std::optional<BatchNumber>(std::uint64_t)>;

  ProgramSource(std::shared_ptr<const View> view, const AssemblyTables& tables, Sequence sequence,
                Options options, Executor& executor, ProgramCounters& counters);
  /// Waits for reads in flight.
  ~ProgramSource();

  /// Starts to fetch what the batch needs of remote stores. True when begin() would not wait for
  /// it, and the batches before have their room in staging memory.
  bool prepare(std::uint64_t place);

  /// Plans batch `place`; its tensors go to `tensors` in the batch area. The batch's programs come
  /// out of next(). A batch that cannot be done on the GPU ends at once, as failed. False after
  /// stop().
  bool begin(std::uint64_t place, std::uint32_t slot, std::span<const std::uint64_t> tensors);

  /// The next program, in the order of numbers, from 1 on. Null after stop().
  std::shared_ptr<const Program> next();
  /// The same without waiting: null where it is not complete.
  std::shared_ptr<const Program> try_next() {
    const std::lock_guard lock(mutex_);
    return take_next();
  }

  struct Ended {
    std::uint64_t place = 0;
    std::string why_failed;  // empty: the batch is complete
  };
  /// Program `number` has ended. Returns the batch that ended with it, if any.
  std::optional<Ended> ended(std::uint64_t number, std::span<const std::uint32_t> statuses);

  void stop();

 private:
  struct Planned {
    std::uint64_t place = 0;
    BatchPlan plan;
    std::string why_refused;  // of a plan with a mistake or without end, which is empty here
    Budget::Reservation memory{};
  };
  using Key = ChunkArena::Key;

  void look_ahead(std::uint64_t place);
  void fetch_ahead();
  bool locate(const Planned& planned, const ChunkUse& use, StagedChunk& staged);
  std::shared_ptr<DecodedChunk> add(std::shared_ptr<ProgramPart>& part, const Key& key,
                                    StagedChunk staged);
  bool add_made_channels(std::shared_ptr<ProgramPart>& part, const BatchPlan& plan,
                         std::span<const std::uint64_t> tensors);
  void pin(ProgramPart& part, const std::shared_ptr<DecodedChunk>& chunk);
  void probe(const StagedChunk& staged, std::uint64_t stored_size);
  std::shared_ptr<ProgramPart> new_part(const std::shared_ptr<StreamedBatch>& batch);
  bool close(std::shared_ptr<ProgramPart>& part);
  void read_those_with_room();
  void read(const std::shared_ptr<ProgramPart>& part);
  void complete(const std::shared_ptr<ProgramPart>& part);
  std::shared_ptr<const Program> take_next();
  std::optional<Ended> end_part(std::uint64_t number, std::span<const std::uint32_t> statuses);
  void trace(Trace::Kind kind, const ProgramPart& part, std::uint64_t begin, std::uint64_t bytes,
             bool failed) const;

  const std::shared_ptr<const View> view_;
  const AssemblyTables& tables_;
  const Sequence sequence_;
  const Options options_;
  Executor& executor_;
  ProgramCounters& counters_;
  std::vector<GpuCodecSupport> codings_;  // of the view's variables
  std::vector<ChunkForm> cpu_forms_;
  std::vector<std::atomic<bool>> cpu_only_;  // variables whose chunks turned out to need the CPU
  // variables whose first chunk was inspected; used by the planning thread
  std::vector<char> probed_;

  // The planning thread's.
  std::deque<Planned> planned_;
  std::uint64_t planned_up_to_ = 0;
  std::uint64_t last_number_ = 0;
  std::int64_t last_made_ = 0;  // of the groups of made channels
  RemoteFetches fetches_;
  bool all_local_ = true;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  ChunkArena arena_;
  std::map<std::uint64_t, std::shared_ptr<ProgramPart>> parts_;  // planned and not ended, by number
  std::uint64_t next_number_ = 1;                                // that next() returns
  StagingRing staging_;
  std::deque<std::shared_ptr<ProgramPart>> closed_;  // that wait for room in it, by number
  int reading_ = 0;                                  // tasks posted
  bool stopping_ = false;
};

}  // namespace batchfs::gpu
