#include "gpu/program/program_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "engine/base/rounding.h"
#include "engine/dataset/dataset.h"
#include "engine/view/plan_check.h"
#include "gpu/program/staged_pieces.h"

namespace batchfs::gpu {

namespace {

/// Batches planned ahead, so that the arena knows future uses.
constexpr std::size_t kLookAhead = 12;
/// Batches of remote stores whose chunks are fetched ahead.
constexpr std::size_t kFetchAhead = 3;
/// A raw chunk from this size on is copied to its place on its own; smaller ones are copied
/// together first.
constexpr std::uint64_t kDirect = 256 << 10;
/// Made channels are computed in groups of about this size, each by one thread.
constexpr std::uint64_t kMadeGroup = 1 << 20;
/// Stands for a variable in keys of the arena: these groups are never used again.
constexpr std::uint32_t kMadeChannels = UINT32_MAX;

}  // namespace

ProgramSource::ProgramSource(std::shared_ptr<const View> view, const AssemblyTables& tables,
                             Sequence sequence, Options options, Executor& executor,
                             ProgramCounters& counters)
    : view_(std::move(view)),
      tables_(tables),
      sequence_(std::move(sequence)),
      options_(options),
      executor_(executor),
      counters_(counters),
      cpu_only_(view_->variables().size()),
      probed_(view_->variables().size()),
      fetches_(options_.changed, options_.fetched),
      arena_(options.sizes.target),
      staging_(options.sizes.staging) {
  for (const Variable* variable : view_->variables()) {
    codings_.push_back(gpu_codec_support(*variable->array));
    cpu_forms_.push_back(cpu_form(*variable->array));
    all_local_ = all_local_ && variable->array->store().is_local();
  }
}

ProgramSource::~ProgramSource() {
  stop();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return reading_ == 0; });
}

void ProgramSource::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

/// Plans the batches from `place` on and announces their uses.
void ProgramSource::look_ahead(std::uint64_t place) {
  while (!planned_.empty() && planned_.front().place < place) planned_.pop_front();
  planned_up_to_ = std::max(planned_up_to_, place);
  std::uint64_t bytes = 0;
  for (const Planned& planned : planned_) bytes += planned.plan.chunks.size() * 1024;
  while (planned_.size() <= kLookAhead &&
         (planned_.size() < 2 || bytes < (std::uint64_t{8} << 20))) {
    const auto next = sequence_(planned_up_to_);
    if (!next) break;
    Planned planned{.place = planned_up_to_++};
    try {
      planned.plan = view_->plan(next->epoch, next->batch, options_.plan);
      if (auto wrong = find_mistake(*view_, planned.plan)) throw std::move(*wrong);
    } catch (const Error& error) {
      planned.why_refused = error.what();
      planned.plan = {};
    }
    const std::uint64_t parts = planned.plan.parts.size() * sizeof(Part);
    if (options_.fetched.hold) planned.memory = options_.fetched.hold(parts);
    bytes += parts;
    const std::lock_guard lock(mutex_);
    for (const ChunkUse& use : planned.plan.chunks)
      arena_.add_use({use.variable, use.chunk}, planned.place);
    planned_.push_back(std::move(planned));
  }
}

/// Starts to fetch the chunks of remote stores that batches need.
void ProgramSource::fetch_ahead() {
  for (std::size_t i = 0; i < std::min(kFetchAhead, planned_.size()); ++i)
    for (const ChunkUse& use : planned_[i].plan.chunks) {
      const Key key{use.variable, use.chunk};
      const Array& array = *view_->variables()[use.variable]->array;
      if (array.store().is_local()) continue;
      {
        const std::lock_guard lock(mutex_);
        if (arena_.find(key) != nullptr) continue;
      }
      if (!fetches_.has_room()) return;  // others come from locate(), one after the other
      fetches_.start(array, key);
    }
}

bool ProgramSource::prepare(std::uint64_t place) {
  look_ahead(place);
  if (!all_local_ && !planned_.empty()) {
    fetch_ahead();
    for (const ChunkUse& use : planned_.front().plan.chunks)
      if (fetches_.is_in_flight({use.variable, use.chunk})) return false;
  }
  const std::lock_guard lock(mutex_);
  return closed_.empty();
}

bool ProgramSource::begin(std::uint64_t place, std::uint32_t slot,
                          std::span<const std::uint64_t> tensors) {
  look_ahead(place);
  if (planned_.empty()) throw Error(ErrorCode::internal, "a batch past the end of its stream");
  if (!all_local_) fetch_ahead();
  const Planned& planned = planned_.front();
  auto batch = std::make_shared<StreamedBatch>();
  batch->began = Trace::now();
  batch->is = *sequence_(place);
  for (std::size_t t = 0; const Dims& shape : view_->shapes(batch->is.batch))
    batch->bytes +=
        static_cast<std::uint64_t>(element_count(shape)) * view_->tensors()[t++].type.itemsize;
  batch->place = place;
  batch->slot = slot;
  std::shared_ptr<ProgramPart> part = new_part(batch);
  batch->why_failed = planned.why_refused;
  try {
    add_paddings(part->gathers, tables_, planned.plan, tensors);
    add_given(part->gathers, *view_, tables_, planned.plan, tensors);
    if (!add_made_channels(part, planned.plan, tensors)) return false;
    for (const ChunkUse& use : planned.plan.chunks) {
      const Key key{use.variable, use.chunk};
      StagedChunk staged;
      std::shared_ptr<DecodedChunk> chunk;
      const auto [first, last] =
          bytes_used(*view_->variables()[use.variable]->array, planned.plan, use);
      {
        const std::lock_guard lock(mutex_);
        arena_.remove_use(key, place);
        chunk = arena_.find(key);
        if (chunk && (chunk->bad || first < chunk->first || last > chunk->first + chunk->bytes))
          chunk = nullptr;
      }
      const bool is_new = chunk == nullptr;
      const bool missing = is_new && !locate(planned, use, staged);
      if (const Array& array = *view_->variables()[use.variable]->array; array.is_sharded()) {
        if (auto mixture = batch->shards.observe(array, array.object_number(use.chunk),
                                                 missing && staged.object_missing))
          throw std::move(*mixture);
      }
      if (missing) {
        add_use(part->gathers, *view_, tables_, planned.plan, use, nullptr, tensors);
        continue;
      }
      if (is_new) {
        chunk = add(part, key, std::move(staged));
        if (chunk == nullptr) return false;
      } else {
        ++counters_.chunks_shared;
        if (options_.counters != nullptr) ++options_.counters->chunk_cache_hits;
        if (!all_local_) fetches_.drop(key);  // fetched before it was known to be present
        if (chunk->decoded_by != part->number) part->assemble_after.push_back(chunk->decoded_by);
      }
      pin(*part, chunk);
      const DecodedPlace at{chunk->offset - chunk->first, chunk->form};
      add_use(part->gathers, *view_, tables_, planned.plan, use, &at, tensors);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    batch->why_failed = error_of(std::current_exception()).what();
  }
  {
    const std::lock_guard lock(mutex_);
    if (!batch->why_failed.empty())
      for (const ChunkUse& use : planned.plan.chunks)
        arena_.remove_use({use.variable, use.chunk}, place);
    batch->last_number = part->number;
  }
  if (!close(part)) return false;
  planned_.pop_front();
  return true;
}

/// Gives a chunk room on the device and in staging: in this part, or in a new one if it is full.
/// Null after stop().
std::shared_ptr<DecodedChunk> ProgramSource::add(std::shared_ptr<ProgramPart>& part, const Key& key,
                                                 StagedChunk staged) {
  const bool decodes = staged.way == StagedChunk::Way::decode;
  const std::uint64_t most = options_.part;
  const std::shared_ptr<StreamedBatch> batch = part->batch;
  if (staged.size > most || (decodes && staged.chunk->bytes > most))
    throw Error(ErrorCode::not_supported, "a chunk is larger than what the GPU decodes at a time");
  if (part->staging_size + staged.size + kPage > most ||
      (decodes && part->decoded + staged.chunk->bytes > most)) {
    if (!close(part)) return nullptr;
    part = new_part(batch);
  }
  std::optional<std::uint64_t> room;
  for (int turn = 0; turn < 2 && !room; ++turn) {
    {
      const std::lock_guard lock(mutex_);
      arena_.drop(key);
      room = arena_.allocate(staged.chunk->bytes, part->decode_after);
    }
    if (room || part->pinned.empty()) break;
    if (!close(part)) return nullptr;  // frees the chunks that it pins
    part = new_part(batch);
  }
  if (!room)
    throw Error(ErrorCode::no_memory, "a chunk is larger than the GPU memory for decoded chunks");
  std::shared_ptr<DecodedChunk> chunk = staged.chunk;
  chunk->offset = *room;
  chunk->size = chunk->bytes;
  chunk->decoded_by = part->number;
  staged.staging = part->staging_size;
  part->staging_size =
      round_up<std::uint64_t>(staged.staging + staged.size, staged.size >= kDirect ? kPage : 16);
  if (decodes) part->decoded += chunk->bytes;
  const std::lock_guard lock(mutex_);
  arena_.insert(key, chunk);
  part->chunks.push_back(std::move(staged));
  return chunk;
}

/// The part's program reads the chunk.
void ProgramSource::pin(ProgramPart& part, const std::shared_ptr<DecodedChunk>& chunk) {
  chunk->pinned = true;
  part.pinned.push_back(chunk);
  part.batch->used.push_back(chunk);
  const std::lock_guard lock(mutex_);
  arena_.add_reader(*chunk, part.number);
}

/// False after stop().
bool ProgramSource::add_made_channels(std::shared_ptr<ProgramPart>& part, const BatchPlan& plan,
                                      std::span<const std::uint64_t> tensors) {
  for (MadeBoxes& boxes : made_boxes(*view_, plan, std::min(kMadeGroup, options_.part / 4))) {
    StagedChunk staged;
    staged.way = StagedChunk::Way::made;
    staged.size = boxes.bytes;
    staged.made = boxes;
    staged.chunk = std::make_shared<DecodedChunk>();
    staged.chunk->bytes = boxes.bytes;
    const auto chunk = add(part, {kMadeChannels, ++last_made_}, std::move(staged));
    if (chunk == nullptr) return false;
    pin(*part, chunk);
    add_made(part->gathers, tables_, plan, boxes, chunk->offset, tensors);
  }
  return true;
}

/// Finds a chunk's stored bytes and how they become a decoded chunk. Returns false if it is
/// missing.
bool ProgramSource::locate(const Planned& planned, const ChunkUse& use, StagedChunk& staged) {
  const Array& array = *view_->variables()[use.variable]->array;
  const GpuCodecSupport& coding = codings_[use.variable];
  staged.array = &array;
  staged.variable = use.variable;
  staged.index = array.grid().chunk(use.chunk);
  std::uint64_t stored_size = 0;
  if (array.store().is_local()) {
    staged.stored = array.find_stored(staged.index, &staged.object_missing);
    if (!staged.stored) return false;
    stored_size = staged.stored->size;
  } else {
    const Key key{use.variable, use.chunk};
    fetches_.start(array, key);
    staged.fetched = fetches_.take(key);
    if (const auto* error = std::get_if<std::exception_ptr>(staged.fetched.get()))
      std::rethrow_exception(*error);
    const auto& encoded = std::get<EncodedChunk>(*staged.fetched);
    if (options_.counters != nullptr) count(encoded, *options_.counters);
    staged.object_missing = encoded.object_missing;
    if (encoded.missing) return false;
    stored_size = encoded.bytes.size();
  }
  staged.chunk = std::make_shared<DecodedChunk>();
  staged.chunk->bytes = array.chunk_bytes();
  staged.chunk->form = &coding.form;
  staged.size = stored_size;
  if (!std::exchange(probed_[use.variable], true)) probe(staged, stored_size);
  const bool on_cpu = coding.kind == GpuCodecSupport::Kind::cpu ||
                      cpu_only_[use.variable].load(std::memory_order_relaxed);
  if (on_cpu) {
    staged.way = StagedChunk::Way::cpu;
    staged.chunk->form = &cpu_forms_[use.variable];
    staged.size = array.chunk_bytes();
  } else if (coding.kind == GpuCodecSupport::Kind::raw && coding.item == 1) {
    if (stored_size != array.chunk_bytes())
      throw Error(ErrorCode::corrupt,
                  fmt::format("the stored chunk has {} bytes, {} were expected", stored_size,
                              array.chunk_bytes()),
                  array.chunk_name(staged.index));
    if (coding.form.strides == cpu_form(array).strides) {  // any run of it can be read alone
      const auto [first, last] = bytes_used(array, planned.plan, use);
      staged.begin = first;
      staged.size = last - first;
      staged.chunk->first = first;
      staged.chunk->bytes = staged.size;
    }
    staged.way = staged.size >= kDirect ? StagedChunk::Way::copy : StagedChunk::Way::decode;
  }
  return true;
}

/// Inspects the first chunk of a variable before batches rely on the GPU: metadata does not say all
/// that a decoder has to support (the codec within Blosc, whether Zstandard frames record their
/// size), and the chunks of an array are alike.
void ProgramSource::probe(const StagedChunk& staged, std::uint64_t stored_size) {
  const GpuCodecSupport& coding = codings_[staged.variable];
  const bool is_compressed =
      coding.kind != GpuCodecSupport::Kind::cpu && coding.kind != GpuCodecSupport::Kind::raw;
  if (!is_compressed || stored_size > options_.part) return;
  std::vector<std::byte> read;
  DecodePlan::Bytes bytes;
  if (staged.stored) {
    read.resize(stored_size);
    staged.array->read_stored(staged.index, *staged.stored, 0, read);
    bytes = read;
  } else {
    bytes = std::as_bytes(std::get<EncodedChunk>(*staged.fetched).bytes.span());
  }
  DecodePlan plan;
  if (add_chunk(plan, coding, bytes, 0, 0, staged.array->chunk_bytes()) == Verdict::unsupported)
    cpu_only_[staged.variable] = true;
}

std::shared_ptr<ProgramPart> ProgramSource::new_part(const std::shared_ptr<StreamedBatch>& batch) {
  auto part = std::make_shared<ProgramPart>();
  part->number = ++last_number_;
  part->batch = batch;
  const std::lock_guard lock(mutex_);
  parts_[part->number] = part;
  return part;
}

/// Closes the part to additions, and has its bytes read once there is room for them. False after
/// stop().
bool ProgramSource::close(std::shared_ptr<ProgramPart>& part) {
  std::sort(part->assemble_after.begin(), part->assemble_after.end());
  part->assemble_after.erase(std::unique(part->assemble_after.begin(), part->assemble_after.end()),
                             part->assemble_after.end());
  for (const auto& chunk : part->pinned) chunk->pinned = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    closed_.push_back(part);
  }
  read_those_with_room();
  return true;
}

void ProgramSource::read_those_with_room() {
  for (;;) {
    std::shared_ptr<ProgramPart> part;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ || closed_.empty()) return;
      const auto room = staging_.reserve(round_up(closed_.front()->staging_size, kPage));
      if (!room) return;
      part = std::move(closed_.front());
      part->staging = room->offset;
      part->staging_end = room->end;
      closed_.pop_front();
      ++reading_;  // stays until its tasks are counted
      if (closed_.empty() && options_.changed) options_.changed();
    }
    read(part);
    const std::lock_guard lock(mutex_);
    if (--reading_ == 0) changed_.notify_all();
  }
}

/// Posts the reads, in pieces.
void ProgramSource::read(const std::shared_ptr<ProgramPart>& part) {
  std::vector<std::vector<StagedPiece>> tasks = staged_pieces(part->chunks);
  part->unread = static_cast<int>(tasks.size());
  part->read_from = Trace::now();
  {
    const std::lock_guard lock(mutex_);
    reading_ += static_cast<int>(tasks.size());
  }
  for (auto& pieces : tasks)
    executor_.post(static_cast<Urgency>(part->number), [this, part, pieces = std::move(pieces)] {
      try {
        for (const StagedPiece& piece : pieces) {
          const StagedChunk& staged = part->chunks[piece.chunk];
          counters_.bytes_staged += piece.size;
          stage(staged, piece.offset, piece.size,
                options_.staging + part->staging + staged.staging + piece.offset);
        }
      } catch (...) {
        const std::lock_guard lock(part->mutex);
        part->why_failed = error_of(std::current_exception()).what();
      }
      if (part->unread.fetch_sub(1, std::memory_order_acq_rel) == 1) complete(part);
      const std::lock_guard lock(mutex_);
      if (--reading_ == 0) changed_.notify_all();
    });
}

/// All bytes of the part are present, or it failed.
void ProgramSource::complete(const std::shared_ptr<ProgramPart>& part) {
  trace(Trace::Kind::fetch, *part, part->read_from, part->staging_size, !part->why_failed.empty());
  auto program =
      build_program(*part, {options_.staging, options_.sizes, codings_, cpu_only_, counters_});
  ++counters_.programs;
  if (part->why_failed.empty() && options_.counters != nullptr) count(*part, *options_.counters);
  for (StagedChunk& staged : part->chunks) staged.fetched = nullptr;
  const std::lock_guard lock(mutex_);
  if (!part->why_failed.empty() && part->batch->why_failed.empty())
    part->batch->why_failed = part->why_failed;
  part->program = std::move(program);
  changed_.notify_all();
  if (options_.changed) options_.changed();
}

std::shared_ptr<const Program> ProgramSource::next() {
  std::shared_ptr<const Program> program;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return (program = take_next()) != nullptr || stopping_; });
  return program;
}

/// Precondition: the mutex is held. Null where it is not complete, and after stop().
std::shared_ptr<const Program> ProgramSource::take_next() {
  const auto it = parts_.find(next_number_);
  if (stopping_ || it == parts_.end() || it->second->program == nullptr) return nullptr;
  ++next_number_;
  it->second->given_at = Trace::now();
  return it->second->program;
}

/// Traces a step of the part that ends now. Fetch and decode steps without a stored chunk are not
/// recorded.
void ProgramSource::trace(Trace::Kind kind, const ProgramPart& part, std::uint64_t begin,
                          std::uint64_t bytes, bool failed) const {
  const auto stored = std::find_if(part.chunks.begin(), part.chunks.end(),
                                   [](const StagedChunk& each) { return each.array != nullptr; });
  if (options_.trace == nullptr || (kind != Trace::Kind::assemble && stored == part.chunks.end()))
    return;
  const Trace::Event event{.kind = kind,
                           .end = failed ? Trace::End::failed : Trace::End::done,
                           .begin = begin,
                           .bytes = bytes,
                           .of = {.view = options_.trace->name(view_->name()),
                                  .rank = static_cast<std::int32_t>(options_.rank),
                                  .world = static_cast<std::int32_t>(options_.world),
                                  .epoch = part.batch->is.epoch,
                                  .batch = part.batch->is.batch}};
  if (kind == Trace::Kind::assemble)
    options_.trace->add(event);
  else
    options_.trace->add(event, stored->array->metadata().path, stored->index);  // the first
}

std::optional<ProgramSource::Ended> ProgramSource::ended(std::uint64_t number,
                                                         std::span<const std::uint32_t> statuses) {
  const std::optional<Ended> batch = end_part(number, statuses);
  read_those_with_room();
  return batch;
}

std::optional<ProgramSource::Ended> ProgramSource::end_part(
    std::uint64_t number, std::span<const std::uint32_t> statuses) {
  const std::lock_guard lock(mutex_);
  const auto it = parts_.find(number);
  if (it == parts_.end() || it->second->program == nullptr)
    throw Error(ErrorCode::internal, "a program ended that was not begun");
  const std::shared_ptr<ProgramPart> part = it->second;
  parts_.erase(it);
  trace(Trace::Kind::decode, *part, part->given_at, part->decoded, false);
  for (std::size_t i = 0; i < part->statuses.size(); ++i) {
    if (i < statuses.size() && statuses[i] == kDecoded) continue;
    part->statuses[i]->refuse(part->statuses[i]->name + ": the GPU found it damaged");
    ++counters_.chunks_refused;
  }
  staging_.free_up_to(part->staging_end);
  arena_.ended(number);
  changed_.notify_all();
  StreamedBatch& batch = *part->batch;
  if (batch.last_number != number) return std::nullopt;
  Ended end{batch.place, batch.why_failed};
  for (const auto& chunk : batch.used)
    if (end.why_failed.empty() && chunk->bad) end.why_failed = chunk->why_bad;
  trace(Trace::Kind::assemble, *part, batch.began, end.why_failed.empty() ? batch.bytes : 0,
        !end.why_failed.empty());
  return end;
}

}  // namespace batchfs::gpu
