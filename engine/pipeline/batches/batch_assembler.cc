#include "engine/pipeline/batches/batch_assembler.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/pipeline/batches/deliveries.h"
#include "engine/pipeline/engine_errors.h"
#include "engine/view/plan/operand_memory.h"
#include "engine/view/plan_check.h"
#include "engine/view/tensors/tensor_set.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

/// Bytes of the list of a batch's parts. Lists of hundreds of batches that are smaller take a few
/// MB beside the budget.
constexpr std::uint64_t kMinCountedList = 16 << 10;
/// Batches of more rows may have lists of megabytes.
constexpr std::int64_t kRowsOfLongList = 8192;
/// Memory of the scheduler for each use: a consumer, and mostly a task.
constexpr std::uint64_t kUseBytes = 1 << 10;

std::shared_ptr<Batch> make_batch(const MemoryFiles& files, const BatchFormat& format,
                                  const BatchLayout& layout) {
  auto batch = std::make_shared<Batch>();
  for (const BatchLayout::File& file : layout.files) {
    MemoryFile& memory =
        batch->files.emplace_back(format.reusable() ? files.create_reusable("batchfs", file.size)
                                                    : files.create("batchfs", file.size));
    for (const BatchLayout::Literal& literal : file.literals)
      std::memcpy(memory.data() + literal.offset, literal.bytes.data(), literal.bytes.size());
  }
  return batch;
}

/// A batch on its way, with the operands of the channels that are made of variables: in a plan they
/// follow the tensors.
struct Unfinished {
  std::shared_ptr<Batch> batch;
  std::vector<BatchLayout::Place> tensors;
  std::vector<Buffer> operands;  // of each of the view's combinations
  std::vector<CombinedPart> combined;
  std::vector<Padding> combined_paddings;

  std::byte* start_of(std::uint32_t tensor) {
    if (tensor >= tensors.size()) return operands[tensor - tensors.size()].data();
    return batch->files[tensors[tensor].file].data() + tensors[tensor].offset;
  }

  void fill(const View& view, const Padding& padding) {
    static constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
    const bool is_operand = padding.tensor >= tensors.size();
    const TensorSpec* tensor = is_operand ? nullptr : &view.tensors()[padding.tensor];
    fill_strided(padding.shape, is_operand ? sizeof(double) : tensor->type.itemsize,
                 is_operand ? reinterpret_cast<const std::byte*>(&kNoValue) : tensor->pad.data(),
                 start_of(padding.tensor) + padding.offset, padding.strides);
  }

  /// Precondition: all chunks have arrived. Releases the memory of the operands.
  void combine(const View& view) {
    std::uint64_t bytes = 0;
    for (const CombinedPart& part : combined)
      view.tensor_set().combinations[part.combination]->write(
          operands[part.combination].data() + part.operands, start_of(part.tensor) + part.offset,
          part.starts);
    for (const Padding& padding : combined_paddings) fill(view, padding);
    for (const Buffer& buffer : operands) bytes += buffer.size();
    operands.clear();
    batch->reservation.split(bytes).release();
  }
};

/// Fills the elements that no chunk fills, and lists what each chunk fills.
void lay_out(const View& view, const BatchPlan& plan, Unfinished& unfinished, Assembly& assembly) {
  const auto start_of = [&](std::uint32_t tensor) { return unfinished.start_of(tensor); };
  for (const Padding& padding : plan.paddings) unfinished.fill(view, padding);
  assembly.repeats = plan.repeats;
  for (const MadePart& made : plan.made)
    view.tensor_set().made.write(made, plan.repeats, start_of(made.part.tensor));
  for (const GivenValue& value : plan.given) {
    const TensorSpec& tensor = view.tensors()[value.tensor];
    const std::size_t itemsize = tensor.type.itemsize;
    std::memcpy(start_of(value.tensor) + value.offset,
                tensor.values->data() + static_cast<std::size_t>(value.sample) * itemsize,
                itemsize);
  }
  assembly.uses.reserve(plan.chunks.size());
  assembly.parts.reserve(plan.parts.size());
  for (const ChunkUse& use : plan.chunks) {
    assembly.uses.push_back({view.variables()[use.variable]->array, use.chunk,
                             static_cast<std::uint32_t>(assembly.parts.size()), use.part_count});
    for (std::uint32_t i = use.first_part; i < use.first_part + use.part_count; ++i) {
      const Part& part = plan.parts[i];
      assembly.parts.push_back(
          {part.source, start_of(part.tensor) + part.offset, part.strides,
           &view.tensor_set().converter(part.tensor, use.variable),
           part.repeat < 0 ? nullptr : &assembly.repeats[static_cast<std::size_t>(part.repeat)]});
    }
  }
}

}  // namespace

void BatchAssembler::post(const BatchTable::RecordPtr& record, bool soon) {
  // Before any decoding except for readers that wait: it takes little time, and the sooner a batch
  // has joined the chunks that it needs, the more it gets from the fetches of others. Weak: a
  // reader that overtakes a prefetch leaves a ticket in the queue, which must not hold the batch.
  soon = soon || with_.table.urgency(*record) == kReaderWaits;
  const Executor::Ticket ticket =
      with_.executor.post(soon ? kReaderWaits : kPrefetch, [this, weak = std::weak_ptr(record)] {
        if (const auto wanted = weak.lock()) assemble(wanted);
      });
  if (!soon) note_prefetch(record, ticket);
}

/// Where readers always wait, prefetches never run, and those of readers that left would fill the
/// queue: they are withdrawn when as many again have come.
void BatchAssembler::note_prefetch(const BatchTable::RecordPtr& record,
                                   const Executor::Ticket& ticket) {
  constexpr std::size_t kFew = 64;
  const std::lock_guard lock(prefetches_mutex_);
  prefetches_.push_back({record, ticket});
  if (prefetches_.size() < 2 * live_prefetches_ + kFew) return;
  std::erase_if(prefetches_, [this](const auto& prefetch) {
    if (!prefetch.first.expired()) return false;
    with_.executor.withdraw(prefetch.second);
    return true;
  });
  live_prefetches_ = prefetches_.size();
}

std::uint64_t BatchAssembler::memory_of(const BatchLayout& layout) const {
  std::uint64_t bytes = 0;
  for (const BatchLayout::File& file : layout.files) bytes += with_.files.memory_of(file.size);
  return bytes;
}

void BatchAssembler::assemble(const BatchTable::RecordPtr& record) {
  std::optional<BatchTable::Begun> begun = with_.table.begin(record);
  if (!begun) return;
  const std::shared_ptr<Assembly> assembly = begun->assembly;
  if (assembly == nullptr) return complete(record, nullptr, ending_error());
  const BatchRequest& request = record->request;
  try {
    assembly->of = traced(with_.trace, request);
    const View& view = *request.view;
    const BatchLayout layout = request.format->layout(view, request.global_batch());
    const std::uint64_t operands = operand_memory(view, request.global_batch());
    const std::uint64_t own = memory_of(layout), bytes = own + operands;
    check_batch_memory(own, operands, with_.budget.limit());
    const bool spare = !begun->waited && is_spare(*record);
    Budget::Reservation memory = reserve(*record, bytes, *begun, spare);
    if (!memory) return begun->waited ? queue(record, bytes) : give_up(record, spare);
    const std::shared_ptr<Batch> batch = make_batch(with_.files, *request.format, layout);
    batch->reservation = std::move(memory);
    batch->view = request.view;
    const auto unfinished =
        std::make_shared<Unfinished>(Unfinished{batch, layout.tensors, {}, {}, {}});
    for (const std::uint64_t size : operand_sizes(view, request.global_batch()))
      unfinished->operands.emplace_back(size);
    {
      // One long list at a time is made: it is reserved when it is known.
      std::unique_lock<std::mutex> alone(long_lists_, std::defer_lock);
      if (view.row_count(request.global_batch()) > kRowsOfLongList) alone.lock();
      BatchPlan plan =
          view.plan(request.epoch, request.global_batch(), {max_parts(with_.budget.limit())});
      check_plan(view, plan);
      lay_out(view, plan, *unfinished, *assembly);
      unfinished->combined = std::move(plan.combined);
      unfinished->combined_paddings = std::move(plan.combined_paddings);
    }
    if (!reserve_for_list(*record, *assembly, begun->waited, spare)) return give_up(record, spare);
    keep_chunks(request, *assembly);
    if (begun->waited) {
      if (auto memory_ahead = with_.budget.try_reserve(memory_for_chunks(*assembly, false)))
        assembly->give_ahead(std::move(memory_ahead));
    } else if (assembly->started && !reserve_for_chunks(*record, *assembly, false, spare)) {
      return give_up(record, spare);
    }
    assembly->shares_memory = unfinished->operands.empty();  // they end before the batch does
    assembly->memory = unfinished->operands.empty() ? std::shared_ptr<void>(batch) : unfinished;
    assembly->finished = [this, record, batch, unfinished,
                          finish = layout.finish](std::exception_ptr error) {
      if (!error) {
        try {
          if (!unfinished->operands.empty()) unfinished->combine(*record->request.view);
          if (finish) finish(batch->files, record->request.epoch);
          for (MemoryFile& file : batch->files) file.seal();
        } catch (...) {
          error = std::current_exception();
        }
      }
      complete(record, batch, error);
    };
  } catch (...) {
    complete(record, nullptr, std::current_exception());
    return;
  }
  if (!begun->waited) ++with_.counters.batches_prefetched;
  with_.look_ahead.begin(request.key());
  with_.scheduler.submit(assembly);
  // From now on the chunks know their consumers. A reader that waits now keeps the chunks that it
  // needs in the cache.
  if (!begun->waited) with_.look_ahead.forget(request.key());
  if (with_.table.submitted(record, *assembly, begun->waited))
    with_.scheduler.reprioritize(assembly);
}

void BatchAssembler::keep_chunks(const BatchRequest& request, Assembly& assembly) {
  const auto taken = [&assembly] {
    TakenParts sum;
    for (const Assembly::Use& use : assembly.uses) {
      if (!ChunkCache::is_worth_keeping(*use.array)) continue;
      sum.chunks += ChunkCache::memory_of_all(1, use.array->chunk_bytes());
      for (const Assembly::Part& part : assembly.parts_of(use))
        sum.parts += static_cast<double>(part.source.elements()) *
                     static_cast<double>(use.array->type().itemsize);
    }
    return sum;
  };
  const KeepChoice choice = choose_keeping(
      *request.view, request.epoch, request.global_batch(), taken,
      [&] { return with_.kept.bytes_of(request.view); },
      [&] { return with_.kept.keep(request.view, with_.table.now()); });
  assembly.keeps_chunks = choice.chunks;
  assembly.keeps_whole_chunks = choice.whole;
}

/// A batch that takes small parts of large chunks, which other batches also use, holds more useful
/// data in the same memory than the chunks.
bool BatchAssembler::is_compact(std::uint64_t bytes) const {
  return with_.look_ahead.shares_beyond_memory() &&
         with_.look_ahead.chunk_bytes_of_a_batch() / 2 > bytes;
}

bool BatchAssembler::is_spare(const BatchTable::Record& record) const {
  // A chunk that would stay else is always worth more: each time that it is decoded again takes
  // longer than a copy.
  return with_.kept.keeps() && with_.table.distance(record) > Prefetcher::kFirstPrefetch;
}

/// Memory that the queue granted; or other memory, if nobody queues for it.
Budget::Reservation BatchAssembler::reserve(const BatchTable::Record& record, std::uint64_t bytes,
                                            BatchTable::Begun& begun, bool spare) {
  if (begun.granted) return std::move(begun.granted);
  if (!with_.queue.empty()) return {};
  if (begun.waited) return with_.reclaimer.reserve_for_reader(bytes);
  return !spare && is_compact(bytes)
             ? with_.reclaimer.reserve_for_prefetch(bytes, ChunkCache::kBegun)
             : reserve_for_prefetch(record, bytes, spare);
}

Budget::Reservation BatchAssembler::reserve_for_prefetch(const BatchTable::Record& record,
                                                         std::uint64_t bytes, bool spare) {
  return spare ? with_.reclaimer.reserve_spare(bytes)
               : with_.reclaimer.reserve_for_prefetch(bytes, with_.table.keep_until(record));
}

/// A reader's batch is begun also where this takes more than there is: it has its own memory. False
/// when a prefetched one gets none.
bool BatchAssembler::reserve_for_list(const BatchTable::Record& record, Assembly& assembly,
                                      bool waited, bool spare) {
  const std::uint64_t bytes = assembly.list_bytes() + assembly.uses.size() * kUseBytes;
  if (bytes <= kMinCountedList) return true;
  assembly.list_memory = waited ? with_.reclaimer.reserve_for_reader(bytes)
                                : reserve_for_prefetch(record, bytes, spare);
  if (waited && !assembly.list_memory) assembly.list_memory = with_.budget.reserve(bytes);
  return static_cast<bool>(assembly.list_memory);
}

/// A batch waits for room for its chunks too, but never for more than a share of the memory.
std::uint64_t BatchAssembler::memory_for_chunks(const Assembly& assembly, bool submitted) const {
  return std::min(with_.scheduler.memory_ahead(assembly, submitted), with_.budget.limit() / 4);
}

bool BatchAssembler::reserve_for_chunks(const BatchTable::Record& record, Assembly& assembly,
                                        bool submitted, bool spare) {
  const std::uint64_t bytes = memory_for_chunks(assembly, submitted);
  if (bytes == 0) return true;
  Budget::Reservation memory = reserve_for_prefetch(record, bytes, spare);
  if (!memory) return false;
  assembly.give_ahead(std::move(memory));
  return true;
}

void BatchAssembler::queue(const BatchTable::RecordPtr& record, std::uint64_t bytes) {
  with_.table.queue(record);
  with_.queue.push({.bytes = bytes,
                    .readers = [this, record] { return with_.table.waiters(*record); },
                    .give_up = [this, record] { return with_.table.drop_queued(record); },
                    .granted =
                        [this, record](Budget::Reservation memory, std::exception_ptr error) {
                          if (error) return complete(record, nullptr, error);
                          with_.table.grant(record, std::move(memory));
                          post(record);
                        }});
}

void BatchAssembler::give_up(const BatchTable::RecordPtr& record, bool spare) {
  switch (with_.table.give_up(record)) {
    case BatchTable::GivenUp::assemble_again:
      return post(record);
    case BatchTable::GivenUp::dropped_started:
      return spare ? with_.prefetcher.on_no_spare_memory(record->request)
                   : with_.prefetcher.on_memory_pressure(record->request);
    case BatchTable::GivenUp::dropped:
      return;
  }
}

void BatchAssembler::complete(const BatchTable::RecordPtr& record, std::shared_ptr<Batch> batch,
                              std::exception_ptr error) {
  if (error) batch = nullptr;
  const BatchRequest& request = record->request;
  const Trace::End end = trace_end(error);
  // Before a reader can get it: a reader that looks then finds it counted.
  if (end == Trace::End::done) ++with_.counters.batches_assembled;
  const BatchTable::Completed completed =
      with_.table.complete(record, batch, end == Trace::End::left);
  if (completed.assemble_again) return post(record);
  with_.look_ahead.forget(request.key());
  if (completed.began != 0)
    with_.trace.add({.kind = Trace::Kind::assemble,
                     .end = end,
                     .begin = completed.began,
                     .bytes = batch == nullptr ? 0 : batch->bytes(),
                     .of = traced(with_.trace, request)});
  if (end == Trace::End::failed) {
    const Error cause = error_of(error);
    const std::string line =
        fmt::format("view {}: epoch {} batch {} failed: {}", request.view->name(), request.epoch,
                    request.global_batch(), cause.what());
    // The object that changed is in the log once; every batch that needs it would be another line.
    if (cause.code() == ErrorCode::stale)
      with_.log.debug(line);
    else
      with_.log.error(line);
  }
  const std::uint64_t now = Trace::now();
  for (const WaiterId id : completed.waiters) {
    const std::optional<Waiter> waiter = with_.waiters.take(id);
    if (!waiter) continue;
    ++with_.counters.reader_waits;
    with_.counters.reader_wait_nanoseconds += now - waiter->since;
    waiter->done(batch, error);
  }
}

}  // namespace batchfs
