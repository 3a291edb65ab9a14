#include "gpu/stream/device_runner.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "gpu/kernels/kernels.h"
#include "gpu/stream/cuda_memory.h"

namespace batchfs::gpu {

namespace {

constexpr std::size_t kReadPast = 16;  // kernels load whole words
constexpr std::size_t kTables = 1 << 20;
constexpr std::size_t kBounce = 8 << 20;
// one processor fills pinned memory at a fifth of the bus speed
constexpr std::size_t kUploaders = 4;

struct Lane {
  cudaStream_t stream = nullptr;
  Growing<Memory::device> source, planes, literals, runs, run_index;
};

/// A program in flight.
struct Flight {
  std::uint64_t number = 0;
  bool busy = false;
  cudaEvent_t done = nullptr;
  std::size_t chunks = 0;
  Growing<Memory::pinned> host_tables, host_status;
  Growing<Memory::device> tables, status, results;
};

}  // namespace

struct DeviceRunner::Impl {
  Options options;
  std::vector<Lane> lanes;
  std::vector<Flight> flights;
  Growing<Memory::device> target, constants, conversions;
  struct Uploader {
    Growing<Memory::pinned> bounce;
    cudaStream_t stream = nullptr;
    cudaEvent_t copied[2] = {};
  };
  Uploader uploaders[kUploaders];
  std::vector<cudaEvent_t> released;  // of each slot
  std::vector<bool> was_released;     // guarded by mutex
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;

  explicit Impl(const Options& wanted)
      : options(wanted),
        lanes(static_cast<std::size_t>(wanted.lanes)),
        flights(2 * static_cast<std::size_t>(wanted.lanes)),
        released(wanted.slots),
        was_released(wanted.slots) {}

  ~Impl() {
    cudaSetDevice(options.device);
    for (Lane& lane : lanes)
      if (lane.stream != nullptr) {
        cudaStreamSynchronize(lane.stream);
        cudaStreamDestroy(lane.stream);
      }
    for (Flight& flight : flights)
      if (flight.done != nullptr) cudaEventDestroy(flight.done);
    for (cudaEvent_t event : released)
      if (event != nullptr) cudaEventDestroy(event);
    for (Uploader& uploader : uploaders) {
      for (cudaEvent_t event : uploader.copied)
        if (event != nullptr) cudaEventDestroy(event);
      if (uploader.stream != nullptr) cudaStreamDestroy(uploader.stream);
    }
  }

  void allocate(std::span<const Conversion> rows, std::span<const std::byte> numbers) {
    check(cudaSetDevice(options.device), "be chosen");
    const AreaSizes& sizes = options.sizes;
    // A training step in the same process takes precedence.
    int lowest = 0, highest = 0;
    check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "say its priorities");
    for (Lane& lane : lanes) {
      check(cudaStreamCreateWithPriority(&lane.stream, cudaStreamNonBlocking, lowest),
            "make a stream");
      lane.source.reserve(sizes.source + kReadPast);
      lane.planes.reserve(sizes.planes + kReadPast);
      lane.literals.reserve(sizes.literals + kReadPast);
      lane.runs.reserve(sizes.runs * sizeof(Run) + kReadPast);
      lane.run_index.reserve(sizes.run_index * sizeof(std::uint32_t) + kReadPast);
    }
    for (Flight& flight : flights) {
      check(cudaEventCreateWithFlags(&flight.done, cudaEventDisableTiming | cudaEventBlockingSync),
            "make an event");
      flight.host_tables.reserve(kTables);
      flight.tables.reserve(kTables);
      for (auto* memory : {&flight.status, &flight.results}) memory->reserve(kTables / 16);
      flight.host_status.reserve(kTables / 16);
    }
    for (cudaEvent_t& event : released)
      check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "make an event");
    target.reserve(sizes.target + kReadPast);
    constants.reserve(std::max<std::size_t>(1, numbers.size()));
    conversions.reserve(std::max<std::size_t>(1, rows.size_bytes()));
    check(cudaMemcpy(constants.as(), numbers.data(), numbers.size(), cudaMemcpyHostToDevice),
          "copy constants");
    check(cudaMemcpy(conversions.as(), rows.data(), rows.size_bytes(), cudaMemcpyHostToDevice),
          "copy conversions");
  }

  void wait_for(std::span<const std::uint64_t> numbers, cudaStream_t stream) {
    for (const std::uint64_t number : numbers) {
      Flight& flight = flights[number % flights.size()];
      if (flight.number == number)  // else it ended long ago
        check(cudaStreamWaitEvent(stream, flight.done), "wait for a program");
    }
  }

  void start(const Program& program) {
    const ProgramHeader& header = program.header();
    Flight& flight = flights[header.number % flights.size()];
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || !flight.busy; });
      if (stopping) throw Error(ErrorCode::interrupted, "the GPU stage is stopping");
      flight.busy = true;
    }
    flight.number = header.number;
    flight.chunks = header.chunks;
    check(cudaSetDevice(options.device), "be chosen");
    Lane& lane = lanes[header.number % lanes.size()];
    const cudaStream_t stream = lane.stream;
    const std::size_t status_bytes = header.chunks * sizeof(std::uint32_t);
    flight.host_tables.reserve(header.size);
    flight.tables.reserve(header.size);
    flight.host_status.reserve(status_bytes);
    flight.status.reserve(status_bytes);
    flight.results.reserve(header.zstd_blocks.rows * sizeof(ZstdBlockResult));

    std::memcpy(flight.host_tables.as(), program.bytes().data(), header.size);
    check(cudaMemcpyAsync(flight.tables.as(), flight.host_tables.as(), header.size,
                          cudaMemcpyHostToDevice, stream),
          "copy tables");
    if (status_bytes > 0)
      check(cudaMemsetAsync(flight.status.as(), 0, status_bytes, stream), "clear statuses");
    copy(program, Area::source, lane.source.as(), stream);
    wait_for(program.table<std::uint64_t>(header.decode_after), stream);
    copy(program, Area::target, target.as(), stream);
    decode(program, flight, lane);
    wait_for(program.table<std::uint64_t>(header.assemble_after), stream);
    assemble(program, flight, stream);
    if (status_bytes > 0)
      check(cudaMemcpyAsync(flight.host_status.as(), flight.status.as(), status_bytes,
                            cudaMemcpyDeviceToHost, stream),
            "copy statuses");
    check(cudaGetLastError(), "start a kernel");
    check(cudaEventRecord(flight.done, stream), "record an event");
  }

  /// Every kUploaders-th piece, through two halves of pinned memory in turn.
  void upload_share(std::size_t number, std::uint64_t offset, std::span<const std::byte> bytes) {
    check(cudaSetDevice(options.device), "be chosen");
    Uploader& u = uploaders[number];
    if (u.stream == nullptr) {
      u.bounce.reserve(2 * kBounce);
      for (cudaEvent_t& event : u.copied)
        check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
              "make an event");
      check(cudaStreamCreateWithFlags(&u.stream, cudaStreamNonBlocking), "make a stream");
    }
    std::size_t turn = 0;
    for (std::size_t at = number * kBounce; at < bytes.size(); at += kUploaders * kBounce, ++turn) {
      const std::size_t size = std::min(kBounce, bytes.size() - at);
      std::byte* half = u.bounce.as<std::byte>() + turn % 2 * kBounce;
      if (turn >= 2) check(cudaEventSynchronize(u.copied[turn % 2]), "copy a batch");
      std::memcpy(half, bytes.data() + at, size);
      check(cudaMemcpyAsync(static_cast<std::byte*>(options.batch) + offset + at, half, size,
                            cudaMemcpyHostToDevice, u.stream),
            "copy a batch");
      check(cudaEventRecord(u.copied[turn % 2], u.stream), "record an event");
    }
    check(cudaStreamSynchronize(u.stream), "copy a batch");
  }

  void copy(const Program& program, Area area, std::uint8_t* to, cudaStream_t stream) {
    for (const CopyRow& row : program.table<CopyRow>(program.header().copies))
      if (row.area == area)
        check(cudaMemcpyAsync(to + row.offset, options.staging + row.staging, row.size,
                              cudaMemcpyHostToDevice, stream),
              "copy chunks");
  }

  void decode(const Program& program, Flight& flight, Lane& lane) {
    const ProgramHeader& header = program.header();
    for (const Round& round : program.table<Round>(header.rounds)) {
      Work work;
      work.source = lane.source.as();
      work.planes = lane.planes.as();
      work.target = target.as();
      work.literals = lane.literals.as();
      work.runs = lane.runs.as<Run>();
      work.run_index = lane.run_index.as<std::uint32_t>();
      work.status = flight.status.as<std::uint32_t>();
      work.zstd_results = flight.results.as<ZstdBlockResult>();
      work = work_of_round(program, round, flight.tables.as(), work);
      launch_lz4(work,
                 program.table<Lz4Stream>(header.lz4_streams)
                     .subspan(round.lz4_streams.first, round.lz4_streams.count),
                 lane.stream);
      launch_deflate(work, round.deflate_streams.count, lane.stream);
      launch_zstd_entropy(work, round.zstd_blocks.count, lane.stream);
      launch_zstd_frames(work,
                         program.table<ZstdFrame>(header.zstd_frames)
                             .subspan(round.zstd_frames.first, round.zstd_frames.count),
                         lane.stream);
      launch_unshuffle(work, round.unshuffles.count, round.longest_unshuffle, lane.stream);
    }
  }

  void assemble(const Program& program, Flight& flight, cudaStream_t stream) {
    const ProgramHeader& header = program.header();
    if (header.slot < released.size()) {
      const std::lock_guard lock(mutex);
      if (was_released[header.slot])
        check(cudaStreamWaitEvent(stream, released[header.slot]), "wait for a slot");
    }
    AssemblyWork work;
    work.chunks = target.as();
    work.constants = constants.as();
    work.batch = static_cast<std::uint8_t*>(options.batch);
    work.conversions = conversions.as<Conversion>();
    launch_gather(work_of_assembly(program, flight.tables.as(), work), header.slices, stream);
  }
};

DeviceRunner::DeviceRunner(const Options& options, std::span<const Conversion> conversions,
                           std::span<const std::byte> constants)
    : impl_(std::make_unique<Impl>(options)) {
  impl_->allocate(conversions, constants);
}

DeviceRunner::~DeviceRunner() = default;

void DeviceRunner::start(const Program& program) { impl_->start(program); }

std::vector<std::uint32_t> DeviceRunner::finish(std::uint64_t number) {
  Flight& flight = impl_->flights[number % impl_->flights.size()];
  check(cudaSetDevice(impl_->options.device), "be chosen");
  check(cudaEventSynchronize(flight.done), "run a program");
  const auto* status = flight.host_status.as<std::uint32_t>();
  std::vector<std::uint32_t> statuses(status, status + flight.chunks);
  const std::lock_guard lock(impl_->mutex);
  flight.busy = false;
  impl_->changed.notify_all();
  return statuses;
}

void DeviceRunner::stop() {
  const std::lock_guard lock(impl_->mutex);
  impl_->stopping = true;
  impl_->changed.notify_all();
}

void DeviceRunner::released(std::uint32_t slot, void* stream) {
  const std::lock_guard lock(impl_->mutex);
  check(cudaEventRecord(impl_->released.at(slot), static_cast<cudaStream_t>(stream)),
        "record an event");
  impl_->was_released[slot] = true;
}

void DeviceRunner::upload(std::uint64_t offset, std::span<const std::byte> bytes) {
  std::vector<std::exception_ptr> errors(kUploaders);
  std::vector<std::thread> threads;
  for (std::size_t u = 0; u < kUploaders; ++u)
    threads.emplace_back([&, u] {
      try {
        impl_->upload_share(u, offset, bytes);
      } catch (...) {
        errors[u] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

void DeviceRunner::download(std::uint64_t offset, std::span<std::byte> bytes) const {
  check(cudaMemcpy(bytes.data(), static_cast<const std::byte*>(impl_->options.batch) + offset,
                   bytes.size(), cudaMemcpyDeviceToHost),
        "copy a batch");
}

std::uint64_t DeviceRunner::memory() const {
  std::uint64_t sum = impl_->target.size() + impl_->constants.size() + impl_->conversions.size();
  for (const Lane& lane : impl_->lanes)
    sum += lane.source.size() + lane.planes.size() + lane.literals.size() + lane.runs.size() +
           lane.run_index.size();
  for (const Flight& flight : impl_->flights)
    sum += flight.tables.size() + flight.status.size() + flight.results.size();
  return sum;
}

}  // namespace batchfs::gpu
