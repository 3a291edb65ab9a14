#include "gpu/program_source.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace batchfs::gpu {

namespace {

/// Batches whose plans are made ahead, so that the arena knows what comes.
constexpr std::size_t kLookAhead = 12;
/// Batches of remote stores whose chunks are fetched ahead.
constexpr std::size_t kFetchAhead = 3;
/// Reads are cut into and collected to pieces of about this size.
constexpr std::uint64_t kPiece = 4 << 20;
/// A raw chunk from this size on is copied to its place on its own; smaller ones together, and from there.
constexpr std::uint64_t kDirect = 256 << 10;
constexpr std::uint64_t kPage = 4096;

std::uint64_t rounded(std::uint64_t size, std::uint64_t to) { return (size + to - 1) / to * to; }

/// The first and one-past-last C-order byte of what a batch takes from a chunk.
std::pair<std::uint64_t, std::uint64_t> run_of(const Array& array, const BatchPlan& plan, const ChunkUse& use) {
  Box box = plan.parts[use.first_part].source;
  for (std::uint32_t i = 1; i < use.part_count; ++i) box = bounding_box(box, plan.parts[use.first_part + i].source);
  const Dims& shape = array.grid().chunk_shape();
  std::uint64_t first = 0;
  for (std::size_t d = 0; d < shape.size(); ++d)
    first = first * static_cast<std::uint64_t>(shape[d]) + static_cast<std::uint64_t>(box.start[d]);
  first *= array.type().itemsize;
  return {first, first + array.run_bytes(box)};
}

}  // namespace

/// A batch on its way.
struct ProgramSource::BatchState {
  std::uint64_t place = 0;
  std::uint32_t slot = 0;
  std::uint64_t last_number = 0;  // its last program
  BatchNumber is;
  std::uint64_t began = 0, bytes = 0;  // for the trace
  std::string why_failed;         // guarded by mutex_
  std::vector<std::shared_ptr<DecodedChunk>> used;
};

/// A chunk that is not on the device yet.
struct ProgramSource::Item {
  enum class Way { decode, copy, cpu };  // the GPU decodes it, needs no decoding, the CPU decodes it
  Way way = Way::decode;
  const Array* array = nullptr;
  std::uint32_t variable = 0;
  Dims index;
  std::optional<Array::Stored> stored;           // of a local store
  std::shared_ptr<Fetched> fetched;              // of a remote one
  std::uint64_t begin = 0, size = 0;             // of the stored bytes that are staged, or decoded ones for the CPU
  std::uint64_t staging = 0;                     // from the beginning of the part's
  std::shared_ptr<DecodedChunk> chunk;
};

struct ProgramSource::Part {
  std::uint64_t number = 0;
  std::shared_ptr<BatchState> batch;
  std::vector<Item> items;
  GatherPlan gathers;
  ProgramNumbers decode_after, assemble_after;
  std::uint64_t decoded = 0;                     // bytes that the GPU decodes
  std::uint64_t staging = 0, staging_size = 0, staging_end = 0;
  std::vector<std::shared_ptr<DecodedChunk>> pinned;
  std::vector<std::shared_ptr<DecodedChunk>> statuses;  // whose chunk each status is
  std::atomic<int> unread{0};
  std::mutex mutex;
  std::string why_failed;                        // guarded by `mutex`
  std::shared_ptr<const Program> program;        // once complete; guarded by the source's mutex
  std::uint64_t read_from = 0, given_at = 0;     // when, for the trace
};

ProgramSource::ProgramSource(std::shared_ptr<const View> view, const AssemblyTables& tables, Sequence sequence,
                             Options options, Executor& executor, ProgramCounters& counters)
    : view_(std::move(view)),
      tables_(tables),
      sequence_(std::move(sequence)),
      options_(options),
      executor_(executor),
      counters_(counters),
      cpu_only_(view_->variables().size()),
      arena_(options.sizes.target) {
  for (const Variable* variable : view_->variables()) {
    codings_.push_back(coding_of(*variable->array));
    cpu_forms_.push_back(cpu_form(*variable->array));
    all_local_ = all_local_ && variable->array->store().is_local();
  }
}

ProgramSource::~ProgramSource() {
  stop();
  for (auto& [key, fetch] : fetches_) fetch.wait();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return reading_ == 0; });
}

void ProgramSource::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

/// Plans of the batches from `place` on, and what they use.
void ProgramSource::look_ahead(std::uint64_t place) {
  while (!planned_.empty() && planned_.front().place < place) planned_.pop_front();
  planned_up_to_ = std::max(planned_up_to_, place);
  std::uint64_t bytes = 0;
  for (const Planned& planned : planned_) bytes += planned.plan.chunks.size() * 1024;
  while (planned_.size() <= kLookAhead && (planned_.size() < 2 || bytes < (std::uint64_t{8} << 20))) {
    const auto next = sequence_(planned_up_to_);
    if (!next) break;
    planned_.push_back({planned_up_to_++, view_->plan(next->epoch, next->batch)});
    bytes += planned_.back().plan.parts.size() * sizeof(batchfs::Part);
    const std::lock_guard lock(mutex_);
    for (const ChunkUse& use : planned_.back().plan.chunks) arena_.add_use({use.variable, use.chunk}, planned_.back().place);
  }
}

/// Starts to fetch what batches need of remote stores.
void ProgramSource::fetch_ahead() {
  for (std::size_t i = 0; i < std::min(kFetchAhead, planned_.size()); ++i)
    for (const ChunkUse& use : planned_[i].plan.chunks) {
      const Key key{use.variable, use.chunk};
      if (view_->variables()[use.variable]->array->store().is_local() || fetches_.contains(key)) continue;
      {
        const std::lock_guard lock(mutex_);
        if (arena_.find(key) != nullptr) continue;
      }
      fetch(key);
    }
}

void ProgramSource::fetch(const Key& key) {
  auto promise = std::make_shared<std::promise<std::shared_ptr<Fetched>>>();
  fetches_[key] = promise->get_future();
  const Array& array = *view_->variables()[key.variable]->array;
  array.fetch(array.grid().chunk(key.chunk), whole_box(array.grid().chunk_shape()), [promise](Fetched outcome) {
    promise->set_value(std::make_shared<Fetched>(std::move(outcome)));
  });
}

bool ProgramSource::begin(std::uint64_t place, std::uint32_t slot, std::span<const std::uint64_t> tensors) {
  look_ahead(place);
  if (planned_.empty()) throw Error(ErrorCode::internal, "a batch past the end of its stream");
  if (!all_local_) fetch_ahead();
  const Planned& planned = planned_.front();
  auto batch = std::make_shared<BatchState>();
  batch->began = Trace::now();
  batch->is = *sequence_(place);
  for (std::size_t t = 0; const Dims& shape : view_->shapes(batch->is.batch))
    batch->bytes += static_cast<std::uint64_t>(element_count(shape)) * view_->tensors()[t++].type.itemsize;
  batch->place = place;
  batch->slot = slot;
  std::shared_ptr<Part> part = new_part(batch);
  try {
    add_paddings(part->gathers, tables_, planned.plan, tensors);
    for (const ChunkUse& use : planned.plan.chunks) {
      const Key key{use.variable, use.chunk};
      Item item;
      std::shared_ptr<DecodedChunk> chunk;
      const auto [first, last] = run_of(*view_->variables()[use.variable]->array, planned.plan, use);
      {
        const std::lock_guard lock(mutex_);
        arena_.remove_use(key, place);
        chunk = arena_.find(key);
        if (chunk && (chunk->bad || first < chunk->first || last > chunk->first + chunk->bytes)) chunk = nullptr;
      }
      const bool is_new = chunk == nullptr;
      if (is_new && !locate(planned, use, item)) {
        add_use(part->gathers, *view_, tables_, planned.plan, use, nullptr, tensors);
        continue;
      }
      if (is_new) {
        const bool decodes = item.way == Item::Way::decode;
        const std::uint64_t most = options_.part;
        if (item.size > most || (decodes && item.chunk->bytes > most))
          throw Error(ErrorCode::not_supported, "a chunk is larger than what the GPU decodes at a time");
        if (part->staging_size + item.size + kPage > most || (decodes && part->decoded + item.chunk->bytes > most)) {
          if (!close(part)) return false;
          part = new_part(batch);
        }
        std::optional<std::uint64_t> room;
        for (int turn = 0; turn < 2 && !room; ++turn) {
          {
            const std::lock_guard lock(mutex_);
            arena_.drop(key);
            room = arena_.allocate(item.chunk->bytes, part->decode_after);
          }
          if (room || part->pinned.empty()) break;
          if (!close(part)) return false;  // what it pins is free then
          part = new_part(batch);
        }
        if (!room) throw Error(ErrorCode::no_memory, "a chunk is larger than the GPU memory for decoded chunks");
        chunk = item.chunk;
        chunk->offset = *room;
        chunk->size = chunk->bytes;
        chunk->decoded_by = part->number;
        item.staging = part->staging_size;
        part->staging_size = rounded(item.staging + item.size, item.size >= kDirect ? kPage : 16);
        if (decodes) part->decoded += chunk->bytes;
        const std::lock_guard lock(mutex_);
        arena_.insert(key, chunk);
        part->items.push_back(std::move(item));
      } else {
        ++counters_.chunks_shared;
        if (!all_local_) fetches_.erase(key);  // fetched before it was known to be here
        if (chunk->decoded_by != part->number) part->assemble_after.push_back(chunk->decoded_by);
      }
      chunk->pinned = true;
      part->pinned.push_back(chunk);
      batch->used.push_back(chunk);
      {
        const std::lock_guard lock(mutex_);
        arena_.add_reader(*chunk, part->number);
      }
      const DecodedPlace at{chunk->offset - chunk->first, chunk->form};
      add_use(part->gathers, *view_, tables_, planned.plan, use, &at, tensors);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    batch->why_failed = error_of(std::current_exception()).what();
  }
  if (!batch->why_failed.empty()) {
    for (const ChunkUse& use : planned.plan.chunks) {
      const std::lock_guard lock(mutex_);
      arena_.remove_use({use.variable, use.chunk}, place);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    batch->last_number = part->number;
  }
  if (!close(part)) return false;
  planned_.pop_front();
  return true;
}

/// Finds out where a chunk's stored bytes are and how they become a decoded chunk. False when it is missing.
bool ProgramSource::locate(const Planned& planned, const ChunkUse& use, Item& item) {
  const Array& array = *view_->variables()[use.variable]->array;
  const Coding& coding = codings_[use.variable];
  item.array = &array;
  item.variable = use.variable;
  item.index = array.grid().chunk(use.chunk);
  std::uint64_t stored_size = 0;
  if (array.store().is_local()) {
    item.stored = array.find_stored(item.index);
    if (!item.stored) return false;
    stored_size = item.stored->size;
  } else {
    const Key key{use.variable, use.chunk};
    if (!fetches_.contains(key)) fetch(key);
    item.fetched = fetches_.at(key).get();
    fetches_.erase(key);
    if (const auto* error = std::get_if<std::exception_ptr>(item.fetched.get())) std::rethrow_exception(*error);
    const auto& encoded = std::get<EncodedChunk>(*item.fetched);
    if (encoded.missing) return false;
    stored_size = encoded.bytes.size();
  }
  item.chunk = std::make_shared<DecodedChunk>();
  item.chunk->bytes = array.chunk_bytes();
  item.chunk->form = &coding.form;
  item.size = stored_size;
  const bool on_cpu = coding.kind == Coding::Kind::cpu || cpu_only_[use.variable].load(std::memory_order_relaxed);
  if (on_cpu) {
    item.way = Item::Way::cpu;
    item.chunk->form = &cpu_forms_[use.variable];
    item.size = array.chunk_bytes();
  } else if (coding.kind == Coding::Kind::raw) {
    if (stored_size != array.chunk_bytes())
      throw Error(ErrorCode::corrupt, fmt::format("the stored chunk has {} bytes, {} were expected", stored_size, array.chunk_bytes()),
                  array.chunk_name(item.index));
    if (coding.form.strides == cpu_form(array).strides) {  // any run of it can be read alone
      const auto [first, last] = run_of(array, planned.plan, use);
      item.begin = first;
      item.size = last - first;
      item.chunk->first = first;
      item.chunk->bytes = item.size;
    }
    item.way = item.size >= kDirect ? Item::Way::copy : Item::Way::decode;
  }
  return true;
}

std::shared_ptr<ProgramSource::Part> ProgramSource::new_part(const std::shared_ptr<BatchState>& batch) {
  auto part = std::make_shared<Part>();
  part->number = ++last_number_;
  part->batch = batch;
  const std::lock_guard lock(mutex_);
  parts_[part->number] = part;
  return part;
}

/// Bytes of the staging ring, in one piece; waits until they are free. nullopt after stop().
std::optional<std::uint64_t> ProgramSource::reserve_staging(std::uint64_t size) {
  const std::uint64_t ring = options_.sizes.staging;
  std::unique_lock lock(mutex_);
  std::uint64_t begin = staging_head_;
  if (begin % ring + size > ring) begin = rounded(begin, ring);
  changed_.wait(lock, [&] { return stopping_ || begin + size - staging_tail_ <= ring; });
  if (stopping_) return std::nullopt;
  staging_head_ = begin + size;
  return begin;
}

/// Nothing more is added to the part: its bytes are read. False after stop().
bool ProgramSource::close(std::shared_ptr<Part>& part) {
  std::sort(part->assemble_after.begin(), part->assemble_after.end());
  part->assemble_after.erase(std::unique(part->assemble_after.begin(), part->assemble_after.end()), part->assemble_after.end());
  for (const auto& chunk : part->pinned) chunk->pinned = false;
  const auto begin = reserve_staging(rounded(part->staging_size, kPage));
  if (!begin) return false;
  {
    const std::lock_guard lock(mutex_);
    part->staging = *begin % options_.sizes.staging;
    part->staging_end = staging_head_;
  }
  read(part);
  return true;
}

/// Posts what is to be read, in pieces.
void ProgramSource::read(const std::shared_ptr<Part>& part) {
  struct Piece {
    std::size_t item;
    std::uint64_t offset, size;
  };
  std::vector<std::vector<Piece>> tasks(1);
  std::uint64_t collected = 0;
  for (std::size_t i = 0; i < part->items.size(); ++i) {
    const Item& item = part->items[i];
    const bool divides = item.way != Item::Way::cpu && item.stored;
    for (std::uint64_t at = 0; at < item.size;) {
      // No piece that is much smaller than the others.
      const std::uint64_t left = item.size - at;
      const std::uint64_t size = divides && left > kPiece + kPiece / 2 ? kPiece : left;
      if (collected + size > kPiece + kPiece / 2 && collected > 0) {
        tasks.emplace_back();
        collected = 0;
      }
      tasks.back().push_back({i, at, size});
      collected += size;
      at += size;
    }
  }
  part->unread = static_cast<int>(tasks.size());
  part->read_from = Trace::now();
  {
    const std::lock_guard lock(mutex_);
    reading_ += static_cast<int>(tasks.size());
  }
  for (auto& pieces : tasks)
    executor_.post(static_cast<Urgency>(part->number), [this, part, pieces = std::move(pieces)] {
      try {
        for (const Piece& piece : pieces) read_piece(*part, part->items[piece.item], piece.offset, piece.size);
      } catch (...) {
        const std::lock_guard lock(part->mutex);
        part->why_failed = error_of(std::current_exception()).what();
      }
      if (part->unread.fetch_sub(1, std::memory_order_acq_rel) == 1) complete(part);
      const std::lock_guard lock(mutex_);
      if (--reading_ == 0) changed_.notify_all();
    });
}

void ProgramSource::read_piece(Part& part, Item& item, std::uint64_t offset, std::uint64_t size) {
  std::byte* to = options_.staging + part.staging + item.staging + offset;
  counters_.bytes_staged += size;
  if (item.way == Item::Way::cpu) {
    const Box whole = whole_box(item.array->grid().chunk_shape());
    const Dims strides = c_strides(whole.shape, item.array->type().itemsize);
    std::uint64_t fetched = 0;
    if (item.stored) item.array->load(item.index, whole, to, strides, &fetched);
    else item.array->decode(item.index, std::get<EncodedChunk>(*item.fetched), whole, to, strides);
    return;
  }
  if (item.stored) {
    item.array->read_stored(item.index, *item.stored, item.begin + offset, {to, size});
  } else {
    std::memcpy(to, std::get<EncodedChunk>(*item.fetched).bytes.data() + item.begin + offset, size);
  }
}

/// Rounds for the items [begin, end), as many as they need for the scratch memory.
void ProgramSource::add_rounds(Part& part, ProgramBuilder& builder, std::size_t begin, std::size_t end) {
  DecodePlan plan;
  std::vector<std::shared_ptr<DecodedChunk>> planned;
  for (std::size_t i = begin; i < end; ++i) {
    Item& item = part.items[i];
    if (item.way != Item::Way::decode) continue;
    const DecodePlan::Bytes bytes{options_.staging + part.staging + item.staging, item.size};
    const std::uint64_t source = item.staging, target = item.chunk->offset, size = item.chunk->bytes;
    Verdict verdict = Verdict::unsupported;
    switch (codings_[item.variable].kind) {
      case Coding::Kind::raw: verdict = plan.add_raw(bytes, source, target, size, 1); break;
      case Coding::Kind::shuffle: verdict = plan.add_raw(bytes, source, target, size, codings_[item.variable].item); break;
      case Coding::Kind::blosc: verdict = plan.add_blosc(bytes, source, target, size); break;
      case Coding::Kind::zstd: verdict = plan.add_zstd(bytes, source, target, size); break;
      case Coding::Kind::lz4: verdict = plan.add_lz4(bytes, source, target, size); break;
      case Coding::Kind::cpu: break;
    }
    if (verdict == Verdict::planned) {
      planned.push_back(item.chunk);
      continue;
    }
    // Others of the array will be the same.
    if (verdict == Verdict::unsupported) cpu_only_[item.variable] = true;
    item.chunk->bad = true;
    ++counters_.chunks_refused;
  }
  if (planned.empty()) return;
  if (!fits(plan, options_.sizes)) {
    if (planned.size() == 1) {
      planned.front()->bad = true;
      ++counters_.chunks_refused;
      return;
    }
    const std::size_t middle = begin + (end - begin) / 2;
    add_rounds(part, builder, begin, middle);
    add_rounds(part, builder, middle, end);
    return;
  }
  plan.finish();
  builder.add_round(plan);
  part.statuses.insert(part.statuses.end(), planned.begin(), planned.end());
}

/// All bytes of the part are there, or it failed: makes its program.
void ProgramSource::complete(const std::shared_ptr<Part>& part) {
  ProgramBuilder builder;
  builder.number = part->number;
  builder.batch = part->batch->place;
  builder.slot = part->batch->slot;
  const bool failed = !part->why_failed.empty();
  trace(Trace::Kind::fetch, *part, part->read_from, part->staging_size, failed);
  std::shared_ptr<const Program> program;
  if (!failed) {
    builder.decode_after = part->decode_after;
    builder.assemble_after = part->assemble_after;
    // One copy for neighbours that go to neighbours.
    const auto copy = [&](Area area, std::uint64_t staging, std::uint64_t offset, std::uint64_t size) {
      if (!builder.copies.empty()) {
        CopyRow& last = builder.copies.back();
        // What lies between two chunks for the decoders is copied with them.
        const std::uint64_t gap = staging - last.staging - last.size;
        if (last.area == area && area == Area::source && gap < kPage) {
          last.size += gap + size;
          return;
        }
      }
      builder.copies.push_back({staging, offset, size, area});
    };
    for (const Item& item : part->items) {
      const bool decodes = item.way == Item::Way::decode;
      copy(decodes ? Area::source : Area::target, part->staging + item.staging, decodes ? item.staging : item.chunk->offset,
           item.size);
      counters_.bytes_decoded += item.chunk->bytes;
      ++(item.way == Item::Way::cpu ? counters_.chunks_on_cpu : counters_.chunks_on_gpu);
    }
    try {
      add_rounds(*part, builder, 0, part->items.size());
      program = std::make_shared<const Program>(builder.build(part->gathers.gathers(), part->gathers.slices()));
    } catch (...) {
      part->why_failed = error_of(std::current_exception()).what();
    }
  }
  if (program == nullptr) {  // keeps its place in the order
    part->statuses.clear();
    for (Item& item : part->items) item.chunk->bad = true;
    ProgramBuilder nothing;
    nothing.number = part->number;
    nothing.batch = part->batch->place;
    nothing.slot = part->batch->slot;
    program = std::make_shared<const Program>(nothing.build({}, 0));
  }
  ++counters_.programs;
  for (Item& item : part->items) item.fetched = nullptr;
  const std::lock_guard lock(mutex_);
  if (!part->why_failed.empty() && part->batch->why_failed.empty()) part->batch->why_failed = part->why_failed;
  part->program = std::move(program);
  changed_.notify_all();
}

std::shared_ptr<const Program> ProgramSource::next() {
  std::unique_lock lock(mutex_);
  const auto ready = [&] {
    const auto it = parts_.find(next_number_);
    return it != parts_.end() && it->second->program != nullptr;
  };
  changed_.wait(lock, [&] { return stopping_ || ready(); });
  if (stopping_) return nullptr;
  Part& part = *parts_.at(next_number_++);
  part.given_at = Trace::now();
  return part.program;
}

/// What was done for the part ends now. Those of no chunk are not worth a line.
void ProgramSource::trace(Trace::Kind kind, const Part& part, std::uint64_t begin, std::uint64_t bytes, bool failed) const {
  if (options_.trace == nullptr || (kind != Trace::Kind::assemble && part.items.empty())) return;
  const Trace::Event event{.kind = kind,
                           .end = failed ? Trace::End::failed : Trace::End::done,
                           .begin = begin,
                           .bytes = bytes,
                           .of = {.view = options_.trace->name(view_->name()),
                                  .rank = static_cast<std::int32_t>(options_.rank),
                                  .world = static_cast<std::int32_t>(options_.world),
                                  .epoch = part.batch->is.epoch,
                                  .batch = part.batch->is.batch}};
  if (kind == Trace::Kind::assemble) options_.trace->add(event);
  else options_.trace->add(event, part.items.front().array->metadata().path, part.items.front().index);  // the first of them
}

std::optional<ProgramSource::Ended> ProgramSource::ended(std::uint64_t number, std::span<const std::uint32_t> statuses) {
  const std::lock_guard lock(mutex_);
  const auto it = parts_.find(number);
  if (it == parts_.end() || it->second->program == nullptr)
    throw Error(ErrorCode::internal, "a program ended that was not begun");
  const std::shared_ptr<Part> part = it->second;
  parts_.erase(it);
  trace(Trace::Kind::decode, *part, part->given_at, part->decoded, false);
  for (std::size_t i = 0; i < part->statuses.size(); ++i) {
    if (i < statuses.size() && statuses[i] == kDecoded) continue;
    part->statuses[i]->bad = true;
    ++counters_.chunks_refused;
  }
  staging_tail_ = part->staging_end;
  arena_.ended(number);
  changed_.notify_all();
  BatchState& batch = *part->batch;
  if (batch.last_number != number) return std::nullopt;
  Ended end{batch.place, batch.why_failed};
  if (end.why_failed.empty() && std::any_of(batch.used.begin(), batch.used.end(), [](const auto& chunk) { return chunk->bad.load(); }))
    end.why_failed = "the GPU does not decode one of its chunks";
  trace(Trace::Kind::assemble, *part, batch.began, end.why_failed.empty() ? batch.bytes : 0, !end.why_failed.empty());
  return end;
}

}  // namespace batchfs::gpu
