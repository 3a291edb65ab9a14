#include "engine/pipeline/arrays/array_reads.h"

#include <cstring>
#include <future>
#include <optional>
#include <utility>

#include "engine/pipeline/chunks/boxes.h"
#include "engine/pipeline/engine_errors.h"

namespace batchfs {

/// 0 when the engine is ending: `done` was called.
WaiterId ArrayReads::add_waiter(BatchDone done, const std::shared_ptr<Assembly>& assembly,
                                Purpose purpose) {
  with_.on_read();
  Waiter waiter{std::move(done), [assembly](WaiterId) { assembly->cancelled = true; },
                purpose == Purpose::reader ? Trace::now() : Waiter::kNoDeadline};
  const WaiterId id = with_.waiters.add(waiter);
  if (id == 0) waiter.done(nullptr, ending_error());
  return id;
}

/// Passes the assembly to the scheduler, and its end to the waiter. `batch`: the waiter's result;
/// `ended`: called last, also when the wait has ended before.
void ArrayReads::submit(WaiterId id, const std::shared_ptr<Assembly>& assembly,
                        std::shared_ptr<Batch> batch, Purpose purpose,
                        std::function<void()> ended) {
  ++under_way_;
  assembly->finished = [this, id, purpose, batch = std::move(batch),
                        ended = std::move(ended)](std::exception_ptr error) {
    if (!error && batch != nullptr) {
      try {
        batch->files[0].seal();
      } catch (...) {
        error = std::current_exception();
      }
    }
    --under_way_;
    if (const std::optional<Waiter> waiter = with_.waiters.take(id)) {
      if (!error && purpose == Purpose::reader) with_.deliveries.record_values();
      waiter->done(error ? nullptr : batch, error);
    }
    if (ended) ended();
  };
  with_.scheduler.submit(assembly);
}

WaiterId ArrayReads::start(const std::shared_ptr<Assembly>& assembly, Purpose purpose,
                           ReadDone done, std::function<void()> ended) {
  const WaiterId id =
      add_waiter([done = std::move(done)](const std::shared_ptr<const Batch>&,
                                          std::exception_ptr error) { done(error); },
                 assembly, purpose);
  if (id != 0)
    submit(id, assembly, nullptr, purpose, std::move(ended));
  else if (ended)
    ended();
  return id;
}

WaiterId ArrayReads::open_box(const std::shared_ptr<const Array>& array, const Box& box,
                              std::string header, BatchDone done) {
  const std::int64_t itemsize = array->type().itemsize;
  const std::uint64_t size = header.size() + static_cast<std::uint64_t>(box.elements() * itemsize);
  const std::uint64_t bytes = with_.files.memory_of(size);
  if (bytes > with_.budget.limit()) {
    done(nullptr, std::make_exception_ptr(chunk_larger_than_budget(bytes, with_.budget.limit())));
    return 0;
  }
  const auto assembly = std::make_shared<Assembly>();
  const WaiterId id = add_waiter(std::move(done), assembly, Purpose::reader);
  if (id == 0) return 0;
  auto begin = [this, id, assembly, size, itemsize, array, box, header = std::move(header)](
                   Budget::Reservation memory, std::exception_ptr error) {
    if (error) return with_.waiters.fail(id, error);
    try {
      auto batch = std::make_shared<Batch>();
      batch->reservation = std::move(memory);
      MemoryFile& file = batch->files.emplace_back(with_.files.create("batchfs-chunk", size));
      std::memcpy(file.data(), header.data(), header.size());
      add_box(*assembly, array, box, nullptr, file.data() + header.size(),
              c_strides(box.shape, itemsize));
      assembly->memory = batch;
      submit(id, assembly, std::move(batch), Purpose::reader, nullptr);
    } catch (...) {
      with_.waiters.fail(id, std::current_exception());
    }
  };
  Budget::Reservation memory;
  if (with_.queue.empty()) memory = with_.reclaimer.reserve_for_reader(bytes);
  if (memory) {
    begin(std::move(memory), nullptr);
  } else {
    with_.queue.push({.bytes = bytes,
                      .readers = [this, id] { return std::size_t{with_.waiters.contains(id)}; },
                      .give_up = [this, id] { return !with_.waiters.contains(id); },
                      .granted = std::move(begin)});
  }
  return id;
}

namespace {

/// Plain chunks up to this size are fetched whole, ahead of a sequential reader.
constexpr std::uint64_t kMaxPlainAhead = 8 << 20;

/// Replies of more runs than that would take longer to put together than to copy.
constexpr std::size_t kMaxRuns = 64;

/// Do elements of this shape with `strides` [bytes] lie in one run, in C order?
bool is_run(const Dims& shape, const Dims& strides, std::int64_t itemsize) {
  std::int64_t expected = itemsize;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

}  // namespace

std::vector<ArrayReads::CachedRun> ArrayReads::find_cached(
    const std::shared_ptr<const Array>& array, std::int64_t first, std::int64_t count) {
  const std::int64_t itemsize = array->type().itemsize;
  std::vector<CachedRun> runs;
  bool found = true;
  for (const Box& box : boxes_of_run(array->shape(), first, count)) {
    const Dims strides = c_strides(box.shape, itemsize);
    for_each_chunk(array->grid(), box, [&](std::int64_t number, const Box& source, const Dims&) {
      // Runs of the box come in the order of its chunks: each chunk's part of it is one run.
      found = found && runs.size() < kMaxRuns && is_run(source.shape, strides, itemsize);
      if (!found) return;
      std::optional<DecodedChunk> chunk = with_.cache.find({array.get(), number}, source);
      // Values of missing objects are checked where an assembly gathers its chunks.
      found = chunk && !chunk->object_missing && is_run(source.shape, chunk->strides, itemsize);
      if (!found) return;
      runs.push_back(
          {{chunk->at(source.start), static_cast<std::size_t>(source.elements() * itemsize)},
           std::move(chunk->memory)});
    });
    if (!found) return {};
  }
  with_.on_read();
  with_.deliveries.record_values();
  return runs;
}

WaiterId ArrayReads::read_elements(const std::shared_ptr<const Array>& array, std::int64_t first,
                                   std::int64_t count, std::byte* out, std::shared_ptr<void> memory,
                                   ReadDone done) {
  const auto assembly = std::make_shared<Assembly>();
  const std::int64_t itemsize = array->type().itemsize;
  for (const Box& box : boxes_of_run(array->shape(), first, count)) {
    add_box(*assembly, array, box, nullptr, out, c_strides(box.shape, itemsize));
    out += box.elements() * itemsize;
  }
  // Several boxes of a run can touch one chunk; each chunk must be used once, so that it is decoded
  // once even when it is too large to be kept.
  merge_uses(*assembly);
  struct Memory {
    std::shared_ptr<void> memory;
    Budget::Reservation reservation;
  };
  const std::uint64_t bytes =
      static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(itemsize);
  const WaiterId id =
      add_waiter([done = std::move(done)](const std::shared_ptr<const Batch>&,
                                          std::exception_ptr error) { done(error); },
                 assembly, Purpose::reader);
  if (id == 0) return 0;
  // Granted beyond the budget, if need be: a read depends on no memory that readers hold.
  auto begin = [this, id, assembly, bytes, memory = std::move(memory)] {
    assembly->memory = std::make_shared<Memory>(Memory{memory, with_.budget.reserve(bytes)});
    submit(id, assembly, nullptr, Purpose::reader, [this, bytes] { end_elements(bytes); });
  };
  {
    const std::lock_guard lock(mutex_);
    if (elements_bytes_ > 0 && elements_bytes_ + bytes > max_elements_bytes_) {
      delayed_.push_back({bytes, std::move(begin)});
      return id;
    }
    elements_bytes_ += bytes;
  }
  begin();
  return id;
}

/// A read of elements has ended: begins those that fit now.
void ArrayReads::end_elements(std::uint64_t bytes) {
  std::vector<std::function<void()>> ready;
  {
    const std::lock_guard lock(mutex_);
    elements_bytes_ -= bytes;
    while (!delayed_.empty() && (elements_bytes_ == 0 ||
                                 elements_bytes_ + delayed_.front().bytes <= max_elements_bytes_)) {
      elements_bytes_ += delayed_.front().bytes;
      ready.push_back(std::move(delayed_.front().begin));
      delayed_.pop_front();
    }
  }
  for (const std::function<void()>& begin : ready) begin();
}

namespace {

std::shared_ptr<Assembly> assembly_of_box(const std::shared_ptr<const Array>& array, const Box& box,
                                          std::shared_ptr<const Converter> converter,
                                          std::byte* out, const Dims& strides,
                                          std::shared_ptr<void> memory) {
  auto assembly = std::make_shared<Assembly>();
  add_box(*assembly, array, box, converter.get(), out, strides);
  struct Memory {
    std::shared_ptr<const Converter> converter;
    std::shared_ptr<void> memory;
  };
  assembly->memory = std::make_shared<Memory>(Memory{std::move(converter), std::move(memory)});
  return assembly;
}

}  // namespace

WaiterId ArrayReads::read_box(const std::shared_ptr<const Array>& array, const Box& box,
                              std::shared_ptr<const Converter> converter, std::byte* out,
                              const Dims& strides, std::shared_ptr<void> memory, ReadDone done,
                              Purpose purpose) {
  return start(assembly_of_box(array, box, std::move(converter), out, strides, std::move(memory)),
               purpose, std::move(done));
}

void ArrayReads::read_box(const std::shared_ptr<const Array>& array, const Box& box,
                          std::shared_ptr<const Converter> converter, std::byte* out,
                          const Dims& strides) {
  struct Promises {
    std::promise<void> read, ended;
  };
  // Shared: a worker is still inside of set_value() when this thread continues.
  const auto promises = std::make_shared<Promises>();
  start(
      assembly_of_box(array, box, std::move(converter), out, strides, nullptr), Purpose::reader,
      [promises](std::exception_ptr error) {
        if (error)
          promises->read.set_exception(error);
        else
          promises->read.set_value();
      },
      [promises] { promises->ended.set_value(); });
  promises->ended.get_future().wait();
  promises->read.get_future().get();
}

void ArrayReads::read_ahead(const std::shared_ptr<const Array>& array, std::int64_t first,
                            std::int64_t count) {
  // Large chunks that are not compressed are read in place: nothing to decode, little to gain.
  if (array->chain().is_plain() && array->chunk_bytes() > kMaxPlainAhead) return;
  for (const Box& box : boxes_of_run(array->shape(), first, count))
    for_each_chunk(array->grid(), box, [&](std::int64_t chunk, const Box&, const Dims&) {
      with_.scheduler.warm(array, chunk);
    });
}

}  // namespace batchfs
