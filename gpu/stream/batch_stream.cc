#include "gpu/stream/batch_stream.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "engine/base/rounding.h"
#include "engine/base/strings.h"
#include "engine/view/spec.h"
#include "gpu/stream/cuda_devices.h"
#include "gpu/stream/device_runner.h"

namespace batchfs::gpu {

namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kTensorAlignment = 256;
constexpr std::uint64_t kMaxPart = 64 * kMiB, kMinPart = 4 * kMiB;
/// Decoded chunks of so many batches beside the slots: with those of one, decoding waits for the
/// memory of the last batch (24 GB/s instead of 90); the rest are chunks that are used again.
constexpr std::uint64_t kBatchesOfRoom = 4;
/// Staging memory, in parts.
constexpr std::uint64_t kStagedParts = 8;

/// A batch as it lies in a slot: what the engine makes where the GPU can't.
class SlotFormat final : public BatchFormat {
 public:
  std::string_view name() const override { return "gpu slot"; }
  BatchLayout layout(const View& view, std::int64_t batch) const override {
    const std::vector<std::uint64_t> offsets = tensor_offsets(view, view.shapes(batch));
    BatchLayout layout;
    layout.files.push_back({offsets.back(), {}});
    for (std::size_t t = 0; t + 1 < offsets.size(); ++t) layout.tensors.push_back({0, offsets[t]});
    return layout;
  }
};
const SlotFormat kSlotFormat;

}  // namespace

std::vector<std::uint64_t> tensor_offsets(const View& view, const std::vector<Dims>& shapes) {
  std::vector<std::uint64_t> offsets{0};
  for (std::size_t t = 0; t < shapes.size(); ++t)
    offsets.push_back(round_up<std::uint64_t>(
        offsets.back() +
            static_cast<std::uint64_t>(element_count(shapes[t])) * view.tensors()[t].type.itemsize,
        kTensorAlignment));
  return offsets;
}

namespace {

std::uint64_t slot_bytes_of(const View& view) {
  std::vector<Dims> shapes = view.shapes(0);
  if (view.batches() > 1)  // others may be larger than the first, but none than a full one
    for (std::size_t t = 0; t < shapes.size(); ++t) shapes[t] = view.tensors()[t].shape;
  return std::max<std::uint64_t>(kTensorAlignment, tensor_offsets(view, shapes).back());
}

/// The layout for the largest programs that fit. If it is null, sets `needed` to the bytes of the
/// smallest.
std::optional<DeviceLayout> layout_within(const View& view, std::uint64_t memory,
                                          std::uint32_t slots, std::uint64_t most_part,
                                          std::uint64_t& needed) {
  DeviceLayout layout;
  layout.slot_bytes = slot_bytes_of(view);
  layout.sizes.batch = layout.slot_bytes * slots;
  std::uint64_t largest_chunk = 0;
  for (const Variable* variable : view.variables())
    largest_chunk = std::max(largest_chunk, variable->array->chunk_bytes());
  for (std::uint64_t part = std::min(kMaxPart, most_part); part >= kMinPart; part /= 2) {
    layout.part = part;
    layout.sizes.source = part + kMiB;
    layout.sizes.planes = layout.sizes.literals = part + kMiB;
    layout.sizes.runs = 3 * part / 8;    // of 8 bytes; twice what dense fields take
    layout.sizes.run_index = part / 64;  // of 4 bytes; four times what whole Zstandard blocks take
    const std::uint64_t lane = layout.sizes.source + 2 * layout.sizes.planes +
                               8 * layout.sizes.runs + 4 * layout.sizes.run_index;
    const std::uint64_t fixed =
        layout.sizes.batch + static_cast<std::uint64_t>(layout.lanes) * lane + 64 * kMiB;
    needed = fixed + static_cast<std::uint64_t>(layout.lanes + 2) * part;
    if (memory < needed && part > kMinPart && part / 2 >= largest_chunk) continue;
    if (memory < needed) break;
    layout.sizes.target = memory - fixed;
    return layout;
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t largest_part(std::uint64_t budget, std::uint64_t parts) {
  constexpr std::uint64_t kShare = 16;  // so that eight readers take half
  std::uint64_t part = kMaxPart;
  while (part > kMinPart && part * parts > budget / kShare) part /= 2;
  return part;
}

PlanLimit plan_limit(const Engine& engine) {
  constexpr std::uint64_t kFree = 8 << 20;
  return {engine.budget().limit() / 8 + kFree};
}

RemoteFetches::Memory memory_for_chunks(Engine& engine) {
  return {.most = engine.budget().limit() / 4,
          .hold = [&engine](std::uint64_t bytes) { return engine.hold(bytes); }};
}

DeviceLayout device_layout(const View& view, std::uint64_t memory, std::uint32_t slots,
                           std::uint64_t most_part) {
  std::uint64_t needed = 0;
  if (auto layout = layout_within(view, memory, slots, most_part, needed))
    return *std::move(layout);
  throw Error(ErrorCode::no_memory,
              fmt::format("the GPU memory of {} is too little for {} batches of {}: give it {}, or "
                          "fewer slots",
                          format_size(memory), slots, format_size(slot_bytes_of(view)),
                          format_size(needed)));
}

std::uint32_t slots_within(const View& view, std::uint64_t memory, const SlotNumbers& numbers) {
  std::uint64_t needed = 0;
  for (std::uint32_t slots = numbers.most; slots > numbers.least; --slots)
    if (const auto layout = layout_within(view, memory, slots, kMaxPart, needed))
      if (slots <= numbers.usual || layout->sizes.target >= kBatchesOfRoom * layout->slot_bytes)
        return slots;
  return numbers.least;
}

struct BatchStream::Impl {
  std::shared_ptr<const View> view;
  Engine& engine;
  const Options options;
  StreamCounters counters;
  std::string why_on_cpu;
  std::uint64_t epoch_batches;
  DeviceLayout layout;
  std::unique_ptr<SlotMemory> slots;
  Budget::Reservation staging_memory;
  std::unique_ptr<PinnedBuffer> staging;
  std::unique_ptr<AssemblyTables> tables;
  std::unique_ptr<DeviceRunner> runner;
  Executor executor;
  std::unique_ptr<ProgramSource> source;

  struct Entry {
    std::uint32_t slot = 0;
    bool ready = false;
    std::string why_on_cpu;
    std::exception_ptr error;
  };
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::deque<std::uint32_t> free_slots;
  std::map<std::uint64_t, Entry> entries;  // batches that are planned and not delivered, by place
  std::deque<std::uint64_t> started;       // numbers of programs that run
  std::deque<std::uint64_t> for_engine;    // places that the GPU could not do
  std::uint64_t next_place = 0;
  bool stopping = false;
  std::exception_ptr broken;  // the device failed
  std::function<void()> on_change;

  std::thread planner, launcher, completer, assembler;

  Impl(std::shared_ptr<const View> a_view, Engine& an_engine, const Options& wanted)
      : view(std::move(a_view)),
        engine(an_engine),
        options(wanted),
        epoch_batches(static_cast<std::uint64_t>(view->rank_batches(wanted.rank, wanted.world))),
        executor(engine.executor(),
                 wanted.threads > 0 ? wanted.threads : engine.executor().threads()) {
    if (const std::string why = why_no_device(); !why.empty())
      throw Error(ErrorCode::not_supported, why);
    if (view->needs_scan())
      throw Error(ErrorCode::internal, "a view whose samples are not known yet has no batches");
    if (epoch_batches == 0) return;
    layout = device_layout(
        *view, options.memory != 0 ? options.memory : default_device_memory(options.device),
        options.slots, largest_part(engine.budget().limit(), kStagedParts));
    try {
      if (options.by_engine) throw Error(ErrorCode::not_supported, "asked for");
      tables = std::make_unique<AssemblyTables>(*view);
      layout.sizes.constants = tables->constants().size();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_supported) throw;
      why_on_cpu = error.what();
    }
    slots = std::make_unique<SlotMemory>(options.device, layout.sizes.batch);
    if (!tables) layout.sizes.target = layout.sizes.source = 0;
    layout.sizes.staging =
        tables ? std::max(options.staging != 0 ? options.staging : kStagedParts * layout.part,
                          3 * layout.part)
               : kMiB;
    staging_memory = engine.reserve(layout.sizes.staging, kStagingName);
    staging = std::make_unique<PinnedBuffer>(layout.sizes.staging);
    DeviceRunner::Options run;
    run.device = options.device;
    run.sizes = layout.sizes;
    run.lanes = tables ? layout.lanes : 1;
    if (!tables) run.sizes.planes = run.sizes.literals = run.sizes.runs = run.sizes.run_index = 0;
    run.staging = staging->data();
    run.batch = slots->data();
    run.slots = options.slots;
    runner = std::make_unique<DeviceRunner>(
        run, tables ? tables->conversions() : std::vector<Conversion>(),
        tables ? tables->constants() : std::vector<std::byte>());
    for (std::uint32_t slot = 0; slot < options.slots; ++slot) free_slots.push_back(slot);
    if (tables) {
      source = std::make_unique<ProgramSource>(
          view, *tables,
          [this](std::uint64_t place) {
            const auto request = request_of(place);
            return request ? std::optional(BatchNumber{request->epoch, request->global_batch()})
                           : std::nullopt;
          },
          ProgramSource::Options{layout.sizes,
                                 staging->data(),
                                 layout.part,
                                 options.rank,
                                 options.world,
                                 &engine.trace(),
                                 &engine.counters(),
                                 {},
                                 plan_limit(engine),
                                 memory_for_chunks(engine)},
          executor, counters);
      launcher = std::thread([this] { guarded([this] { launch(); }); });
      completer = std::thread([this] { guarded([this] { complete(); }); });
    }
    assembler = std::thread([this] { guarded([this] { assemble(); }); });
    planner = std::thread([this] { guarded([this] { plan(); }); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
      changed.notify_all();
    }
    if (source) source->stop();
    if (runner) runner->stop();
    for (std::thread* thread : {&planner, &launcher, &completer, &assembler})
      if (thread->joinable()) thread->join();
    source = nullptr;  // waits for reads into staging
    executor.stop();
    runner = nullptr;
  }

  std::optional<BatchRequest> request_of(std::uint64_t place) const {
    const std::uint64_t at = static_cast<std::uint64_t>(options.first_epoch) * epoch_batches +
                             static_cast<std::uint64_t>(options.first_batch) + place;
    const auto epoch = static_cast<std::int64_t>(at / epoch_batches);
    if (epoch >= view->spec().epochs) return std::nullopt;
    return BatchRequest{view,         &kSlotFormat,
                        epoch,        static_cast<std::int64_t>(at % epoch_batches),
                        options.rank, options.world};
  }

  /// Precondition: the mutex is held.
  void notify() {
    changed.notify_all();
    if (on_change) on_change();
  }

  /// A thread whose end is the end of the stream.
  template <class Body>
  void guarded(Body body) {
    try {
      body();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!stopping && !broken) broken = std::current_exception();
      stopping = true;
      notify();
      if (source) source->stop();
      if (runner) runner->stop();
    }
  }

  void plan() {
    for (std::uint64_t place = 0; request_of(place); ++place) {
      std::uint32_t slot = 0;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return stopping || !free_slots.empty(); });
        if (stopping) return;
        slot = free_slots.front();
        free_slots.pop_front();
        entries[place].slot = slot;
        if (!source) {
          entries[place].why_on_cpu = why_on_cpu;
          for_engine.push_back(place);
          changed.notify_all();
          continue;
        }
      }
      std::vector<std::uint64_t> tensors =
          tensor_offsets(*view, view->shapes(request_of(place)->global_batch()));
      tensors.pop_back();
      for (std::uint64_t& offset : tensors) offset += slot * layout.slot_bytes;
      if (!source->begin(place, slot, tensors)) return;
    }
  }

  void launch() {
    while (const auto program = source->next()) {
      runner->start(*program);
      const std::lock_guard lock(mutex);
      started.push_back(program->header().number);
      changed.notify_all();
    }
  }

  void complete() {
    for (;;) {
      std::uint64_t number = 0;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return stopping || !started.empty(); });
        if (started.empty()) return;
        number = started.front();
        started.pop_front();
      }
      const auto statuses = runner->finish(number);
      const auto ended = source->ended(number, statuses);
      if (!ended) continue;
      const std::lock_guard lock(mutex);
      Entry& entry = entries[ended->place];
      entry.ready = ended->why_failed.empty();
      entry.why_on_cpu = ended->why_failed;
      if (!entry.ready) for_engine.push_back(ended->place);
      notify();
    }
  }

  /// Batches that the engine puts together.
  void assemble() {
    for (;;) {
      std::uint64_t place = 0;
      std::uint32_t slot = 0;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return stopping || !for_engine.empty(); });
        if (stopping) return;
        place = for_engine.front();
        for_engine.pop_front();
        slot = entries.at(place).slot;
      }
      std::exception_ptr error;
      try {
        const std::shared_ptr<const Batch> batch = engine.open(*request_of(place));
        const MemoryFile& file = batch->files.front();
        runner->upload(slot * layout.slot_bytes, {file.data(), file.size()});
        ++counters.batches_on_cpu;
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      Entry& entry = entries.at(place);
      entry.ready = true;
      entry.error = error;
      notify();
    }
  }

  static std::uint64_t default_device_memory(int device) {
    return std::min<std::uint64_t>(free_device_memory(device) / 2, std::uint64_t{24} << 30);
  }
};

BatchStream::BatchStream(std::shared_ptr<const View> view, Engine& engine, const Options& options)
    : impl_(std::make_unique<Impl>(std::move(view), engine, options)) {}
BatchStream::~BatchStream() = default;

std::optional<DeviceBatch> BatchStream::next() {
  Impl& i = *impl_;
  if (i.epoch_batches == 0) return std::nullopt;
  const std::uint64_t place = i.next_place;
  const auto request = i.request_of(place);
  if (!request) return std::nullopt;
  DeviceBatch batch{place, request->epoch, request->batch, 0, {}, {}};
  {
    std::unique_lock lock(i.mutex);
    i.changed.wait(lock, [&] {
      const auto it = i.entries.find(place);
      return i.stopping || (it != i.entries.end() && it->second.ready);
    });
    const auto it = i.entries.find(place);
    if (it == i.entries.end() || !it->second.ready) {
      if (i.broken) std::rethrow_exception(i.broken);
      throw Error(ErrorCode::interrupted, "the GPU stage is stopping");
    }
    batch.slot = it->second.slot;
    batch.why_on_cpu = std::move(it->second.why_on_cpu);
    const std::exception_ptr error = it->second.error;
    i.entries.erase(it);
    ++i.next_place;
    if (error) {
      i.free_slots.push_back(batch.slot);
      i.changed.notify_all();
      std::rethrow_exception(error);
    }
  }
  const std::vector<Dims> shapes = i.view->shapes(request->global_batch());
  const std::vector<std::uint64_t> offsets = tensor_offsets(*i.view, shapes);
  for (std::size_t t = 0; t < shapes.size(); ++t) {
    const std::uint64_t offset = batch.slot * i.layout.slot_bytes + offsets[t];
    batch.tensors.push_back({static_cast<std::byte*>(i.slots->data()) + offset, offset, shapes[t]});
    i.counters.bytes_delivered +=
        static_cast<std::uint64_t>(element_count(shapes[t])) * i.view->tensors()[t].type.itemsize;
  }
  ++i.counters.batches;
  return batch;
}

bool BatchStream::ready() const {
  const std::lock_guard lock(impl_->mutex);
  const auto it = impl_->entries.find(impl_->next_place);
  return impl_->stopping || !impl_->request_of(impl_->next_place) ||
         (it != impl_->entries.end() && it->second.ready);
}

void BatchStream::on_change(std::function<void()> changed) {
  const std::lock_guard lock(impl_->mutex);
  impl_->on_change = std::move(changed);
}

void BatchStream::release(const DeviceBatch& batch, void* stream) {
  if (stream != nullptr) impl_->runner->released(batch.slot, stream);
  const std::lock_guard lock(impl_->mutex);
  impl_->free_slots.push_back(batch.slot);
  impl_->changed.notify_all();
}

const View& BatchStream::view() const { return *impl_->view; }
const SlotMemory& BatchStream::slots() const { return *impl_->slots; }
const StreamCounters& BatchStream::counters() const { return impl_->counters; }
bool BatchStream::broken() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->broken != nullptr;
}
const std::string& BatchStream::why_on_cpu() const { return impl_->why_on_cpu; }
void BatchStream::read(const DeviceTensor& tensor, std::span<std::byte> to) const {
  impl_->runner->download(tensor.offset, to);
}
std::uint64_t BatchStream::device_memory() const {
  return impl_->runner->memory() + impl_->slots->size();
}

}  // namespace batchfs::gpu
