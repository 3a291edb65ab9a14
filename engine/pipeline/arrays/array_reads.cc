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

/// Gives the assembly to the scheduler, and its end to the waiter. `batch`: what the waiter gets;
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
  // As large as the kernel's requests, and as many as there are readers: granted at once.
  assembly->memory = std::make_shared<Memory>(
      Memory{std::move(memory), with_.budget.reserve(static_cast<std::uint64_t>(count) *
                                                     static_cast<std::uint64_t>(itemsize))});
  return start(assembly, Purpose::reader, std::move(done));
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
  if (array->chain().is_plain())
    return;  // read in place, nothing to decode: the page cache does it
  for (const Box& box : boxes_of_run(array->shape(), first, count))
    for_each_chunk(array->grid(), box, [&](std::int64_t chunk, const Box&, const Dims&) {
      with_.scheduler.warm(array, chunk);
    });
}

}  // namespace batchfs
