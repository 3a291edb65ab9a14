#pragma once
// A part of a batch on its way to the GPU: the chunks that are not on the device yet, and the
// program that decodes them and assembles the part once their stored bytes lie in staging memory.
// Not thread-safe except where noted.

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/array/array.h"
#include "engine/array/shard_presence.h"
#include "engine/telemetry/counters.h"
#include "gpu/program/assembly_plan.h"
#include "gpu/program/chunk_arena.h"
#include "gpu/program/gpu_codec_support.h"
#include "gpu/program/made_boxes.h"
#include "gpu/program/plan.h"
#include "gpu/program/program.h"

namespace batchfs::gpu {

struct ProgramCounters {
  std::atomic<std::uint64_t> programs{0};
  std::atomic<std::uint64_t> chunks_on_gpu{0};   // decoded, or copied where they need no decoding
  std::atomic<std::uint64_t> chunks_on_cpu{0};   // decoded by the CPU for the GPU
  std::atomic<std::uint64_t> chunks_refused{0};  // arrived, and turned out not to be for the GPU
  std::atomic<std::uint64_t> chunks_shared{0};   // uses that found their chunk on the device
  std::atomic<std::uint64_t> bytes_staged{0};    // stored bytes read into staging
  std::atomic<std::uint64_t> bytes_decoded{0};   // on the device
};

/// One batch of an epoch.
struct BatchNumber {
  std::int64_t epoch = 0, batch = 0;  // global
};

/// A batch in flight.
struct StreamedBatch {
  std::uint64_t place = 0;
  std::uint32_t slot = 0;
  std::uint64_t last_number = 0;  // its last program
  BatchNumber is;
  std::uint64_t began = 0, bytes = 0;  // for the trace
  std::string why_failed;              // guarded by the source's mutex
  std::vector<std::shared_ptr<DecodedChunk>> used;
  ShardPresence shards;
};

/// Result of a request for a chunk of a remote store.
using Fetched = std::variant<EncodedChunk, std::exception_ptr>;

inline constexpr std::uint64_t kPage = 4096;  // granularity of staging memory

/// A chunk that is not on the device yet.
struct StagedChunk {
  enum class Way {
    decode,
    copy,
    cpu,
    made
  };  // the GPU decodes it, needs no decoding, the CPU decodes it, the CPU computes it
  Way way = Way::decode;
  const Array* array = nullptr;  // null: not a chunk of a store, but `made`
  std::uint32_t variable = 0;
  Dims index;
  bool object_missing = false;          // of a missing chunk: its object is missing, too
  std::optional<Array::Stored> stored;  // of a local store
  std::shared_ptr<Fetched> fetched;     // of a remote store, without error
  std::uint64_t begin = 0,
                size = 0;     // of the stored bytes that are staged, or decoded ones for the CPU
  std::uint64_t staging = 0;  // from the beginning of the part's
  std::shared_ptr<DecodedChunk> chunk;
  MadeBoxes made;
};

/// Copies bytes [offset, offset + size) of a chunk's staged bytes to `to`; all of them if the CPU
/// decodes or computes the chunk.
void stage(const StagedChunk& staged, std::uint64_t offset, std::uint64_t size, std::byte* to);

struct ProgramPart {
  std::uint64_t number = 0;
  std::shared_ptr<StreamedBatch> batch;
  std::vector<StagedChunk> chunks;
  GatherPlan gathers;
  ProgramNumbers decode_after, assemble_after;
  std::uint64_t decoded = 0;  // bytes that the GPU decodes
  std::uint64_t staging = 0, staging_size = 0, staging_end = 0;
  std::vector<std::shared_ptr<DecodedChunk>> pinned;
  std::vector<std::shared_ptr<DecodedChunk>> statuses;  // the chunk of each status
  std::atomic<int> unread{0};
  std::mutex mutex;
  std::string why_failed;                     // guarded by `mutex` while it is read
  std::shared_ptr<const Program> program;     // once complete; guarded by the source's mutex
  std::uint64_t read_from = 0, given_at = 0;  // when, for the trace
};

/// Counts a chunk of a remote store that has arrived.
void count(const EncodedChunk& arrived, Counters& counters);
/// Counts the chunks of a part whose bytes are all present: those of local stores as read, and all
/// as decoded.
void count(const ProgramPart& part, Counters& counters);

/// Inputs to make a part's program.
struct ProgramPlace {
  const std::byte* staging = nullptr;
  AreaSizes sizes;
  std::span<const GpuCodecSupport> codings;  // of the view's variables
  // set here for variables whose chunks turned out to need the CPU
  std::span<std::atomic<bool>> cpu_only;
  ProgramCounters& counters;
};

/// Plans a chunk of an array with this codec support: its stored bytes, where they lie in the
/// source area, and where `size` decoded bytes go in the target area.
Verdict add_chunk(DecodePlan& plan, const GpuCodecSupport& coding, DecodePlan::Bytes stored,
                  std::uint64_t source, std::uint64_t target, std::uint64_t size);

/// Makes the program of a part whose bytes are all present. Marks a chunk that the GPU cannot
/// decode as bad. If the program cannot be made, why_failed holds the reason, and the program does
/// nothing: it keeps the part's place in the order.
std::shared_ptr<const Program> build_program(ProgramPart& part, const ProgramPlace& place);

}  // namespace batchfs::gpu
