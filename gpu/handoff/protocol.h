#pragma once
// The hand-off's wire format: messages between a reader and the process that makes batches, over a
// Unix socket.
//
// The socket is of type SOCK_SEQPACKET: a message arrives whole or not at all, and descriptors
// arrive with the message they belong to. Every message is one of the structs below, in the
// machine's own byte order (little-endian: batchfs runs on nothing else), without padding; some are
// followed by the records they count. Each begins with a Header whose `length` is that of the whole
// message: a receiver refuses one that differs from what arrived. Fields called `reserved` are
// zero. Numbers of batches are global, as in the mount's epoch directories without a rank: the
// reader turns its rank, world and workers into (first, step).
//
//   reader                                             server
//   Hello      which view, what it can map    ->
//                                             <-       Welcome   how many batches; with it, in a
//                                                                descriptor, the view's texts
//   Start      a stream of batches, in order  ->
//                                             <-       Batch ... as many ahead as the stream's
//                                                                depth says
//   Release    leases it is done with         ->
//   Want       it waits, holding all it got   ->
//                                             <-       End       of the stream
//   Get        one batch, by number           ->
//                                             <-       Batch, or Failed
//                                             <-       Refused   and then the connection ends
//
//   any process of the user                            server
//   State      which text; also without Hello ->
//                                             <-       StateText with it, in a descriptor, the text
//   Refresh    in place of Hello              ->
//                                             <-       Refreshed or Refused; then the connection
//                                                                ends
//
// A Batch is leased: its memory stays unchanged until the reader releases the lease or its
// connection ends, as it does with the reader's death. A batch that cannot be made is Failed, in
// its place in the stream; the stream continues after it. Batches are made only as the reader takes
// them: a stream has at most `depth` batches that are not released, fewer if memory is short;
// batches of earlier streams in slots of GPU memory count, too. A reader that keeps them all and
// waits for another sends Want, and gets one more, or Failed if that would not fit into memory. It
// does not send it while a GPU works on batches that its consumer has released: a slot will soon be
// free.
//
// Memory. A batch's tensors lie in pieces of memory, each with an id that is unique in the
// connection. The first message with an id carries the descriptor (kMemoryAttached); a piece that
// is kTransient belongs to one batch and is unmapped with its release. Any other piece, a slot of a
// ring for instance, stays mapped and its id is used again, until another non-transient piece of
// its kind comes or the connection ends: then it is unmapped when the last batch in it is released.
// The reader's Hello lists the kinds of memory that it can map.
//
// Mode client. The server then makes programs (gpu/program/program.h) instead of batches, and the
// reader runs them on its own device, in its own memory (MemoryKind::own). The Welcome comes with a
// second descriptor, a socket that carries Setups: each begins a series of programs, which has its
// own socket, so that the series ends when the socket closes:
//
//   reader                                             server
//                                             <-       Setup     areas, tables; with it the
//                                                                descriptors of its bytes, of
//                                                                staging memory, which the reader
//                                                                maps read-only, and of the socket
//                                             <-       Program ... on that socket; with each a
//                                                                descriptor of its bytes
//   Ended      in the order of programs       ->
//
// A Batch in MemoryKind::own comes when the last of its programs has ended successfully; its
// memory's id is the Setup's. The program's part of its batch's slot is free: the reader released
// its earlier contents. A batch that programs cannot make comes in host memory. A reader whose
// device fails reports that and ends the socket of the series: then all batches come in host
// memory.
//
// Refresh. Instead of Hello, a process of the same user may send Refresh, a Header alone: the store
// is read again, which may take long; with ForceRefresh also its data if its metadata is unchanged.
// The answer is Refreshed or Refused; then the connection ends. Readers that sent Hello before keep
// the old view, later ones get the new one.
//
// Growing. A reader sends the newest version it knows, the server answers with the version that
// both use. A new kind of memory is a new MemoryKind with a bit in HelloMessage::kinds; a new step
// is a new MessageType, sent only to readers that declared in HelloMessage::features that they
// understand it.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace batchfs::handoff {

static_assert(std::endian::native == std::endian::little);

/// Version 2: coordinates come with the Welcome, sample numbers and windows with each Batch. State
/// was added later within it: a server that does not know it answers Refused, as to any unknown
/// message. Version 3: a reader that waits sends Want also if all batches that it holds belong to
/// an earlier stream. Version 4: the Welcome names the reading of the store.
inline constexpr std::uint16_t kVersion = 4;

/// The longest message, with its records.
inline constexpr std::uint32_t kMaxMessage = 128 << 10;
/// Maximum number of leases in one Release.
inline constexpr std::uint32_t kMaxReleases = 1024;
/// Maximum number of unreleased batches of a stream.
inline constexpr std::uint32_t kMaxDepth = 64;
/// Maximum number of descriptors of one message: SCM_MAX_FD of Linux is 253.
inline constexpr std::uint32_t kMaxDescriptors = 16;
/// Maximum size of a world.
inline constexpr std::int64_t kMaxWorld = 65536;
/// Maximum number of samples of a batch: the bound of "batch" in views.
inline constexpr std::int64_t kMaxSamples = 1 << 24;
/// Maximum number of dimensions of a view's windows.
inline constexpr std::uint32_t kMaxWindowDims = 64;
/// Maximum number of bytes of a text of StateText.
inline constexpr std::uint64_t kMaxStateText = std::uint64_t{64} << 20;
/// Maximum number of bytes of a view's coordinates. Coordinates that do not fit are left out.
inline constexpr std::uint64_t kMaxCoordinates = std::uint64_t{256} << 20;

enum class MessageType : std::uint16_t {
  hello = 1,
  start = 2,
  get = 3,
  release = 4,
  want = 5,           // sent by readers, like the ones above
  state = 6,          // sent by monitoring clients
  refresh = 7,        // sent instead of Hello, to have the store read again
  force_refresh = 8,  // the same, even if nothing seems to have changed
  welcome = 64,
  batch = 65,
  end = 66,
  failed = 67,
  refused = 68,
  state_text = 69,  // of the server
  refreshed = 70,   // of the server
  setup = 128,
  program = 129,
  ended = 130,  // of the sockets for programs
};

struct Header {
  std::uint32_t length;  // bytes of the message, this header included
  MessageType type;
  std::uint16_t version;
};

/// How batches reach the reader.
enum class Mode : std::uint32_t {
  automatic = 0,  // the server chooses
  shm = 1,        // memory files of the host
  server = 2,     // slots of device memory that the server fills
  client = 3,     // compressed chunks and their programs: the reader decodes
};

enum class MemoryKind : std::uint32_t {
  host = 1,        // a memory file: map it, read-only
  device_fd = 2,   // an allocation of cuMemCreate, exported as a descriptor
  device_ipc = 3,  // a memory file that holds a cudaIpcMemHandle_t
  own = 4,         // of the reader: the batch area of its decoder
};
inline constexpr std::uint32_t bit(MemoryKind kind) {
  return 1u << static_cast<std::uint32_t>(kind);
}

/// Why a batch for a reader that wants batches on a GPU was not made there.
enum class Fallback : std::uint32_t {
  none = 0,
  by_number = 1,    // requested alone, not in a stream
  behind = 2,       // other readers of the same rank read at another place
  past_end = 3,     // padding of a rank, or an epoch past the view's last
  slots_held = 4,   // readers hold all slots
  no_memory = 5,    // there is too little GPU memory for the view
  not_decoded = 6,  // the GPU does not decode a chunk, or does not convert the values
  failed = 7,       // the GPU, or the reader's decoder, failed
};
inline constexpr std::size_t kFallbacks = 8;

struct HelloMessage {
  Header header;  // version: the newest that the reader knows
  Mode mode;
  std::uint32_t kinds;     // bits of the MemoryKinds that it can map
  std::uint64_t features;  // bits of message types beyond version 1: none yet
  std::int64_t rank, world;
  std::uint8_t gpu_uuid[16];  // of the device it wants batches on; zero for none
  std::uint32_t name_length;  // of the view; 0 if the server has only one
  std::uint32_t device_mib;   // memory that the reader's decoder may take, for MemoryKind::own
  char name[256];
};

/// Its one descriptor is a memory file with two JSON texts, one after the other: schema.json and
/// view.json, like the mount's files. From version 2 on a CoordinatesRecord follows.
struct WelcomeMessage {
  Header header;  // version: the one that both use
  Mode mode;      // never automatic
  std::uint32_t largest_depth;
  std::uint64_t schema_length, view_length;  // bytes of the texts
  std::int64_t samples, batch_size, batches, epochs;
  std::uint32_t remainder;  // Remainder
  std::uint32_t tensor_count;
};

/// Follows a Welcome of version 2 or later. The memory file holds, after the texts and from a
/// multiple of 8 on, `length` bytes: a CoordinateRecord for each of the schema's coordinates, and
/// their values.
struct CoordinatesRecord {
  std::uint64_t length;
  std::uint32_t count;         // of the schema's coordinates
  std::uint32_t window_count;  // dimensions of the schema's windows
};

/// Follows the CoordinatesRecord of version 4 or later: the reading of the store of the batches. A
/// server that continues a session has the same numbers of readings: a reader that connects again
/// does not continue with another reading, even if the view looks the same.
struct ReadingRecord {
  std::uint64_t session = 0;  // 0: no session, and the reading is unknown
  std::uint64_t number = 0;   // of the session's readings
};

/// Values in C order, in the schema's data type. `bytes` 0: left out.
struct CoordinateRecord {
  std::uint64_t offset;  // from the first record on, a multiple of 8
  std::uint64_t bytes;
};

/// Rule for samples that do not fill a batch, and for batches that do not fill a round of ranks.
enum class Remainder : std::uint32_t { keep = 0, drop = 1, pad = 2 };

/// The batches first, first + step, ... `count` of them. Replaces the stream before it, whose
/// batches may still arrive: the reader releases those. `stream` is any number but 0; `count` 0
/// only ends the earlier stream.
struct StartMessage {
  Header header;
  std::uint64_t stream;
  std::int64_t epoch, first, step, count;
  std::uint32_t depth;
  std::uint32_t reserved;
};

struct GetMessage {
  Header header;
  std::uint64_t request;  // any number but 0, repeated in the answer
  std::int64_t epoch, batch;
};

/// Followed by `count` leases (std::uint64_t).
struct ReleaseMessage {
  Header header;
  std::uint32_t count;
  std::uint32_t reserved;
};

/// From now on the stream's depth is `depth`, and the reader waits for the answer after `received`
/// batches or failures of the stream. If more than these are sent already, it does not wait any
/// more when this is read. kOnlyDepth: it does not wait.
struct WantMessage {
  Header header;
  std::uint64_t stream;
  std::uint64_t received;
  std::uint32_t depth;
  std::uint32_t reserved;
};
inline constexpr std::uint64_t kOnlyDepth = UINT64_MAX;

/// Followed by MemoryRecord[memory_count], TensorRecord[tensor_count], std::int64_t[dim_count]: the
/// shapes of the tensors one after the other, in the order of the schema. Elements lie in C order.
/// From version 2 on a WindowsRecord follows.
struct BatchMessage {
  Header header;
  std::uint64_t lease;    // never 0, never twice in a connection
  std::uint64_t stream;   // of the Start, 0 for a Get
  std::uint64_t request;  // of the Get, 0 for a stream
  std::int64_t epoch, batch, samples;
  std::uint32_t memory_count, tensor_count, dim_count;
  Fallback fallback;  // none if the reader wants no GPU
};

inline constexpr std::uint32_t kMemoryAttached = 1;
inline constexpr std::uint32_t kMemoryTransient = 2;

struct MemoryRecord {
  std::uint64_t id;
  std::uint64_t size;  // bytes
  MemoryKind kind;
  std::uint32_t flags;
};

struct TensorRecord {
  std::uint64_t offset;  // of the first element in its memory
  std::uint64_t bytes;
  std::uint32_t memory;  // which of this message's MemoryRecords
  std::uint32_t rank;    // how many of the dims are its
};

/// The batch's samples: their numbers (std::int64_t[samples]), then where the window of each begins
/// (std::int64_t[samples][window_count]), positions of the view's selection. They follow this
/// record, or lie in a memory file, the message's last descriptor.
struct WindowsRecord {
  std::uint32_t samples;
  std::uint32_t attached;  // 1: in the memory file
};

struct EndMessage {
  Header header;
  std::uint64_t stream;
};

/// Followed by the two texts, UTF-8. A Failed of a stream counts as one of its batches until its
/// lease is released.
struct FailedMessage {
  Header header;
  std::uint64_t lease;  // 0 for a Get
  std::uint64_t stream, request;
  std::int64_t epoch, batch;
  std::uint32_t code;  // ErrorCode
  std::uint32_t why_length, where_length;
  std::uint32_t reserved;
};

/// Followed by the two texts.
struct RefusedMessage {
  Header header;
  std::uint32_t code;
  std::uint32_t why_length, where_length;
  std::uint32_t reserved;
};

/// Texts that a State can request: those of the files in .batchfs of a mount.
enum class StateText : std::uint32_t { status = 1, metrics = 2, config = 3, trace = 4, log = 5 };

/// One at a time: send the next after the answer.
struct StateMessage {
  Header header;
  StateText what;
  std::uint32_t reserved;
};

/// With a descriptor: a memory file of at least `length` bytes, at most kMaxStateText. If the text
/// does not exist, Refused.
struct StateTextMessage {
  Header header;
  StateText what;
  std::uint32_t reserved;
  std::uint64_t length;
};

/// Followed by `length` bytes of JSON: the changes.
struct RefreshedMessage {
  Header header;
  std::uint32_t length;
  std::uint32_t reserved;
};

/// With three descriptors: a memory file with the setup's bytes (gpu/program/program_setup.h),
/// staging memory, a socket.
struct SetupMessage {
  Header header;
  std::uint64_t id;  // of the batches' memory
  std::uint64_t setup_size, staging_size;
};

/// With a descriptor: a memory file with the program's bytes.
struct ProgramMessage {
  Header header;
  std::uint64_t number, size;
};

/// Followed by `count` numbers of chunks (std::uint32_t) that were not decoded; kAllRefused for all
/// of them. Number 0: the reader's decoder has failed with `code`, an ErrorCode, or is not needed
/// any more if that is `interrupted`; the socket ends.
struct EndedMessage {
  Header header;
  std::uint64_t number;
  std::uint32_t count;
  std::uint32_t code;
};
inline constexpr std::uint32_t kAllRefused = UINT32_MAX;
inline constexpr std::uint32_t kMaxRefused = 1024;

// The layout is the contract.
static_assert(sizeof(ReadingRecord) == 16);
static_assert(sizeof(Header) == 8 && sizeof(HelloMessage) == 320 && sizeof(WelcomeMessage) == 72);
static_assert(sizeof(StartMessage) == 56 && sizeof(GetMessage) == 32 &&
              sizeof(ReleaseMessage) == 16 && sizeof(WantMessage) == 32);
static_assert(sizeof(BatchMessage) == 72 && sizeof(MemoryRecord) == 24 &&
              sizeof(TensorRecord) == 24);
static_assert(sizeof(CoordinatesRecord) == 16 && sizeof(CoordinateRecord) == 16 &&
              sizeof(WindowsRecord) == 8);
static_assert(sizeof(StateMessage) == 16 && sizeof(StateTextMessage) == 24);
static_assert(sizeof(SetupMessage) == 32 && sizeof(ProgramMessage) == 24 &&
              sizeof(EndedMessage) == 24);
static_assert(sizeof(EndMessage) == 16 && sizeof(FailedMessage) == 64 &&
              sizeof(RefusedMessage) == 24 && sizeof(RefreshedMessage) == 16);

}  // namespace batchfs::handoff
