#pragma once
// A reader's batches, one after the other, complete in device memory: reading, copies, decoding and
// assembly of several batches overlap, as far ahead as there are slots.
//
//   BatchStream stream(view, engine, {.device = 0, .rank = 0, .world = 1});
//   while (auto batch = stream.next()) {
//     use(batch->tensors[0].data);        // device memory
//     stream.release(*batch, cuda_stream);  // or null: everything that used it has ended
//   }
//
// A batch that the GPU cannot make (a codec or a conversion that it does not do, a chunk that it
// refuses) is put together by the engine and copied, without its reader noticing; `counters` tell
// how many. The slots are memory that other processes can map (SlotMemory).

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/pipeline/engine.h"
#include "gpu/program/program_source.h"
#include "gpu/stream/slot_memory.h"

namespace batchfs::gpu {

struct DeviceTensor {
  void* data = nullptr;      // device memory, C order, native byte order
  std::uint64_t offset = 0;  // of it in the slots' memory
  Dims shape;
};

struct DeviceBatch {
  std::uint64_t place = 0;            // in the stream, from 0
  std::int64_t epoch = 0, batch = 0;  // the rank's batch
  std::uint32_t slot = 0;
  std::vector<DeviceTensor> tensors;  // as View::tensors()
  std::string why_on_cpu;             // why the engine made it; empty: the GPU did
};

struct StreamCounters : ProgramCounters {
  std::atomic<std::uint64_t> batches{0}, batches_on_cpu{0}, bytes_delivered{0};
};

/// How device memory is shared out. Pure; throws no_memory, saying how much is needed.
struct DeviceLayout {
  AreaSizes sizes;  // but for staging and constants
  std::uint64_t slot_bytes = 0;
  std::uint64_t part = 0;  // ProgramSource::Options::part
  int lanes = 4;
};
/// `most_part`: of the part; a power of two times the smallest is the next smaller one.
DeviceLayout device_layout(const View& view, std::uint64_t memory, std::uint32_t slots,
                           std::uint64_t most_part = UINT64_MAX);
/// The largest part for which `parts` of them in host memory take no more than a sixteenth of a
/// budget; the smallest where none does. Pure.
std::uint64_t largest_part(std::uint64_t budget, std::uint64_t parts);

/// Staging memory in the words of Engine::reserve().
inline constexpr const char* kStagingName = "chunks on their way to a GPU";
/// For ProgramSource::Options, with memory of the engine's budget. `engine` outlives the source.
PlanLimit plan_limit(const Engine& engine);
RemoteFetches::Memory memory_for_chunks(Engine& engine);

/// How many slots a stream in this memory gets: `most` where decoded chunks keep enough room beside
/// them, down to `usual` where they do not, and down to `least` where no more fit. Pure.
struct SlotNumbers {
  std::uint32_t most = 0, usual = 0, least = 0;
};
std::uint32_t slots_within(const View& view, std::uint64_t memory, const SlotNumbers& numbers);

/// Where each tensor of a batch of these shapes begins in its slot, and the end.
std::vector<std::uint64_t> tensor_offsets(const View& view, const std::vector<Dims>& shapes);

class BatchStream {
 public:
  struct Options {
    int device = 0;
    std::uint64_t memory = 0;   // device bytes in all; 0: half of the free memory, at most 24 GiB
    std::uint64_t staging = 0;  // pinned host bytes; 0: eight programs' worth
    std::uint32_t slots = 3;
    int threads = 0;  // that read, of the engine's; 0: all of them
    std::int64_t rank = 0, world = 1;
    std::int64_t first_epoch = 0, first_batch = 0;  // the rank's; where to begin
    bool by_engine = false;                         // nothing is decoded on the device
  };
  /// Allocates everything. The view has its samples (with_samples()). Throws not_supported
  /// without a GPU, no_memory for too small a budget.
  BatchStream(std::shared_ptr<const View> view, Engine& engine, const Options& options);
  /// Waits for batches in progress. Batches that are held become invalid.
  ~BatchStream();

  /// The next batch; waits. nullopt after the last of the last epoch. Throws what went wrong with
  /// it: the batches after it still come.
  std::optional<DeviceBatch> next();
  /// Whether next() would not wait.
  bool ready() const;
  /// `changed` is called when ready() may return something else, by any thread and with locks held.
  /// Called once.
  void on_change(std::function<void()> changed);
  /// The slot is used again after what `stream` (a cudaStream_t of this process, or null) has to do
  /// now.
  void release(const DeviceBatch& batch, void* stream = nullptr);

  const View& view() const;
  const SlotMemory& slots() const;
  const StreamCounters& counters() const;
  /// The device failed: no batch comes any more.
  bool broken() const;
  /// Why every batch comes from the CPU; empty when they don't.
  const std::string& why_on_cpu() const;
  /// Copies a tensor's bytes to the host, for tests.
  void read(const DeviceTensor& tensor, std::span<std::byte> to) const;
  std::uint64_t device_memory() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchfs::gpu
