#pragma once
// A part of a batch on its way to the GPU: the chunks that are not there yet, and the program that
// decodes them and puts the part together, once their stored bytes lie in staging memory. Of one
// thread at a time, but where it says so.

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
  std::atomic<std::uint64_t> chunks_refused{0};  // found not to be for the GPU when they were there
  std::atomic<std::uint64_t> chunks_shared{0};   // uses that found their chunk on the device
  std::atomic<std::uint64_t> bytes_staged{0};    // stored bytes read into staging
  std::atomic<std::uint64_t> bytes_decoded{0};   // on the device
};

/// One batch of an epoch.
struct BatchNumber {
  std::int64_t epoch = 0, batch = 0;  // global
};

/// A batch on its way.
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

/// What came of a request for a chunk of a remote store.
using Fetched = std::variant<EncodedChunk, std::exception_ptr>;

inline constexpr std::uint64_t kPage = 4096;  // that staging memory is given out by

/// A chunk that is not on the device yet.
struct StagedChunk {
  enum class Way {
    decode,
    copy,
    cpu,
    made
  };  // the GPU decodes it, needs no decoding, the CPU decodes it, the CPU computes it
  Way way = Way::decode;
  const Array* array = nullptr;  // null: it is no chunk of a store, but `made`
  std::uint32_t variable = 0;
  Dims index;
  bool object_missing = false;          // where the chunk is missing: its object is
  std::optional<Array::Stored> stored;  // of a local store
  std::shared_ptr<Fetched> fetched;     // of a remote one, and without error
  std::uint64_t begin = 0,
                size = 0;     // of the stored bytes that are staged, or decoded ones for the CPU
  std::uint64_t staging = 0;  // from the beginning of the part's
  std::shared_ptr<DecodedChunk> chunk;
  MadeBoxes made;
};

/// Brings bytes [offset, offset + size) of a chunk's staged bytes to `to`; all of them where the
/// CPU decodes or computes it.
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
  std::vector<std::shared_ptr<DecodedChunk>> statuses;  // whose chunk each status is
  std::atomic<int> unread{0};
  std::mutex mutex;
  std::string why_failed;                     // guarded by `mutex` while it is read
  std::shared_ptr<const Program> program;     // once complete; guarded by the source's mutex
  std::uint64_t read_from = 0, given_at = 0;  // when, for the trace
};

/// Adds a chunk of a remote store that has arrived.
void count(const EncodedChunk& arrived, Counters& counters);
/// Adds the chunks of a part whose bytes are all there: those of local stores as read, and all as
/// decoded.
void count(const ProgramPart& part, Counters& counters);

/// What a part's program is made for.
struct ProgramPlace {
  const std::byte* staging = nullptr;
  AreaSizes sizes;
  std::span<const GpuCodecSupport> codings;  // of the view's variables
  std::span<std::atomic<bool>> cpu_only;     // whose chunks turned out to be for the CPU: set here
  ProgramCounters& counters;
};

/// Plans a chunk of an array of this coding: its stored bytes, where they lie in the source area,
/// and where `size` decoded bytes go in the target area.
Verdict add_chunk(DecodePlan& plan, const GpuCodecSupport& coding, DecodePlan::Bytes stored,
                  std::uint64_t source, std::uint64_t target, std::uint64_t size);

/// The program of a part whose bytes are all there. A chunk that the GPU cannot decode is marked
/// bad. Where it cannot be made, why_failed says so, and the program does nothing: it keeps the
/// part's place in the order.
std::shared_ptr<const Program> build_program(ProgramPart& part, const ProgramPlace& place);

}  // namespace batchfs::gpu
