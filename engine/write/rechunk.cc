#include "engine/write/rechunk.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include <malloc.h>

#include <fmt/format.h>

#include "engine/base/budget.h"
#include "engine/base/strings.h"
#include "engine/dataset/dataset.h"
#include "engine/store/fingerprint.h"
#include "engine/store/output/parent_folder.h"
#include "engine/write/output_metadata.h"
#include "engine/write/piece_copy.h"
#include "engine/write/recorded_run.h"
#include "engine/write/region_copy.h"
#include "engine/write/run_identity.h"
#include "engine/write/string_copy.h"

namespace batchfs {

namespace {

constexpr int kRemoteReads = 32, kRemoteWrites = 16;  // at a time
/// Memory of a process beside the values: 18 MiB for the program and its libraries, 16 for freed
/// buffers (kMinPooled), up to 4 of free memory in each of a few heaps.
constexpr std::uint64_t kProgramMemory = 42 << 20;
/// Memory of a thread: its stack, contexts of decoders, slabs of pieces (piece_codec.h).
constexpr std::uint64_t kThreadMemory = 1 << 20;

/// Limits that these alone would nearly take are halved.
std::uint64_t memory_beside_values(std::uint64_t limit, int threads) {
  return std::min(kProgramMemory + static_cast<std::uint64_t>(threads) * kThreadMemory, limit / 2);
}

std::string dims_text(const Dims& dims) {
  std::string text;
  for (const std::int64_t length : dims) text += (text.empty() ? "" : ",") + std::to_string(length);
  return text;
}

bool is_strings(const RechunkArray& array) { return array.array == nullptr; }

/// Memory of regions that are done, for the next ones: fresh memory costs a page fault for every
/// 4 KiB. Thread-safe.
class SpareRegions {
 public:
  /// One of this size, or a new one: then all others are freed first, so that there are never more
  /// than fit into the memory of regions in progress.
  Buffer take(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    for (Buffer& one : spare_)
      if (one.size() == bytes) {
        Buffer taken = std::move(one);
        one = std::move(spare_.back());
        spare_.pop_back();
        return taken;
      }
    spare_.clear();
    return Buffer(bytes);
  }
  void give(Buffer region) {
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(region));
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    spare_.clear();
  }

 private:
  std::mutex mutex_;  // guards spare_
  std::vector<Buffer> spare_;
};

}  // namespace

/// One run of the share of a task.
class Rechunk::Running {
 public:
  Running(const Rechunk& owner, std::shared_ptr<OutputStore> output, const RechunkRun& how)
      : owner_(owner),
        output_(std::move(output)),
        source_(owner.source(), {owner.options_.threads, false, how.cancelled}),
        identity_(owner.identity(source_.digests())),
        record_(*output_, identity_, owner.options_.task, owner.options_.tasks),
        run_(record_, {how.progress, how.cancelled, [this] {
                         if (pieces_ != nullptr && pieces_ != output_) pieces_->sync();
                       }}) {
    if (!owner.has_two_passes()) return;
    if (how.temporary.empty() && !output_->is_local())
      throw Error(ErrorCode::invalid_argument,
                  "the copy takes two passes, and their pieces need a local folder: name one with "
                  "--temporary, or raise --memory",
                  output_->url());
    if (how.temporary.empty()) {
      pieces_ = output_;
      return;
    }
    make_folder(how.temporary);
    pieces_ =
        open_local_output(how.temporary + "/batchfs-" + identity_.at("id").get<std::string>());
  }

  RechunkResult run() {
    record_.open();
    const bool is_array = owner_.arrays_.size() == 1 && owner_.arrays_[0].output.path.empty();
    if (output_->get(last_key(owner_.options_.format, is_array))) return finish();
    count_work();
    for (int pass = 0; pass < 2; ++pass) {
      if (!run_pass(pass)) {
        result_.state = RechunkResult::State::interrupted;
        return result_;
      }
      if (pass == 0) source_.confirm();  // the second one reads pieces
      record_.complete(pass);
      spare_.clear();
      ::malloc_trim(0);  // encoded pieces: a region of the second pass takes all of the memory
      if (!record_.all_complete(pass)) {
        result_.state = pass == 0 && owner_.has_two_passes() ? RechunkResult::State::first_pass
                                                             : RechunkResult::State::task_done;
        if (pass == 0 && !owner_.has_two_passes()) record_.complete(1);
        return result_;
      }
    }
    if (!record_.may_finish()) {
      result_.state = RechunkResult::State::task_done;
      return result_;
    }
    std::vector<const OutputArray*> arrays;
    for (const RechunkArray& array : owner_.arrays_) arrays.push_back(&array.output);
    put_metadata(*output_, owner_.options_.format, arrays, *owner_.hierarchy_,
                 owner_.options_.group);
    return finish();
  }

 private:
  struct Unit {
    std::size_t array;
    std::int64_t region;  // in its grid; of strings, 0
    std::int64_t number;  // of all units of the run
  };

  RechunkResult finish() {
    if (pieces_ != nullptr) pieces_->discard_working_files();
    output_->discard_working_files();
    result_.state = RechunkResult::State::finished;
    return result_;
  }

  std::int64_t regions_of(std::size_t a, int pass) const {
    const RechunkArray& array = owner_.arrays_[a];
    if (is_strings(array)) return pass == 0 ? 1 : 0;
    if (pass == 1 && !array.plan.two_passes) return 0;
    return grid_of(array, pass).chunk_count();
  }
  static ChunkGrid grid_of(const RechunkArray& array, int pass) {
    return ChunkGrid(array.source->shape,
                     pass == 0 ? array.plan.read_region : array.plan.write_region);
  }
  static std::uint64_t weight_of(const RechunkArray& array, int pass) {
    if (is_strings(array)) return 1;
    return std::max<std::uint64_t>(1, pass == 0 ? array.plan.read_bytes : array.plan.write_bytes);
  }

  /// The units of this task's share: contiguous, by decoded bytes.
  template <class Use>
  void for_each_unit(int pass, Use&& use) const {
    long double all = 0;
    for (std::size_t a = 0; a < owner_.arrays_.size(); ++a)
      all += static_cast<long double>(regions_of(a, pass)) *
             static_cast<long double>(weight_of(owner_.arrays_[a], pass));
    long double before = 0;
    std::int64_t number = 0;
    for (int p = 0; p < pass; ++p)
      for (std::size_t a = 0; a < owner_.arrays_.size(); ++a) number += regions_of(a, p);
    for (std::size_t a = 0; a < owner_.arrays_.size(); ++a) {
      const auto weight = static_cast<long double>(weight_of(owner_.arrays_[a], pass));
      const std::int64_t regions = regions_of(a, pass);
      for (std::int64_t region = 0; region < regions; ++region, ++number) {
        const long double middle = before + (static_cast<long double>(region) + 0.5L) * weight;
        if (static_cast<int>(middle / all * owner_.options_.tasks) != owner_.options_.task)
          continue;
        if (!use(Unit{a, region, number})) return;
      }
      before += static_cast<long double>(regions) * weight;
    }
  }

  void count_work() {
    std::int64_t all = 0, done = 0;
    for (int pass = 0; pass < 2; ++pass)
      for_each_unit(pass, [&](const Unit& unit) {
        const auto bytes = static_cast<std::int64_t>(weight_of(owner_.arrays_[unit.array], pass));
        all += bytes;
        if (record_.is_done(unit.number)) {
          done += bytes;
          ++result_.regions_skipped;
        }
        return true;
      });
    run_.expect(done, all);
  }

  /// False when it was interrupted. Completed regions are saved in any case.
  bool run_pass(int pass) {
    std::vector<Unit> units;
    for_each_unit(pass, [&](const Unit& unit) {
      if (!record_.is_done(unit.number)) units.push_back(unit);
      return true;
    });
    const Threads& threads = owner_.threads_;
    const RegionLimits limits{threads.read, threads.write,
                              owner_.store_->is_local() && !owner_.options_.remote_output,
                              threads.region_memory};
    std::size_t next = 0;
    return run_.run(limits, [&]() -> std::shared_ptr<RegionWork> {
      if (next == units.size()) return nullptr;
      const Unit& unit = units[next++];
      return work_of(unit, pass);
    });
  }

  std::shared_ptr<RegionWork> work_of(const Unit& unit, int pass) {
    const RechunkArray& array = owner_.arrays_[unit.array];
    const auto bytes = static_cast<std::int64_t>(weight_of(array, pass));
    auto work = std::make_shared<RegionWork>();
    if (is_strings(array)) {
      RegionWork* const made = work.get();
      work->memory = owner_.threads_.region_memory;
      work->begin = [this, made, &array, unit, bytes] {
        const auto copy =
            std::make_shared<StringCopy>(owner_.store_, array.source, array.output, *output_,
                                         made->memory, owner_.threads_.write);
        made->write_count = copy->items();
        made->write = [copy](std::size_t i) { copy->copy(i); };
        made->done = [this, copy, unit, bytes] {
          note_objects(copy->objects_put(), copy->stored_bytes());
          note_done(unit, bytes);
        };
      };
      return work;
    }
    const ChunkGrid grid = grid_of(array, pass);
    const Dims index = grid.chunk(unit.region);
    const Box region = grid.box(index);
    const std::int64_t itemsize = array.source->type.itemsize;
    work->memory = static_cast<std::uint64_t>(region.elements() * itemsize);
    const auto values = std::make_shared<Buffer>();
    // Readers and writers are made when the region begins: they take memory of their own.
    RegionWork* const made = work.get();
    const bool cuts = pass == 0 && array.plan.two_passes;
    const std::uint64_t bytes_of_values = work->memory;
    if (cuts) work->memory += work->memory + work->memory / 8;  // the encoded pieces
    work->begin = [this, made, values, &array, region, index, pass, cuts, unit, bytes, itemsize,
                   bytes_of_values] {
      *values = spare_.take(bytes_of_values);
      if (pass == 0) {
        const auto reader = std::make_shared<ChunkReader>(*array.array, region);
        made->read_count = reader->items();
        made->read = [reader, values](std::size_t i) { reader->read(i, values->data()); };
      } else {
        const auto reader = std::make_shared<PieceReader>(piece_form(unit.array, itemsize), index);
        made->read_count = reader->items();
        made->read = [reader, values](std::size_t i) { reader->read(i, values->data()); };
      }
      if (cuts) {
        const auto writer = std::make_shared<PieceWriter>(piece_form(unit.array, itemsize), index);
        made->write_count = writer->items();
        made->write = [writer, values](std::size_t i) { writer->write(i, values->data()); };
        made->done = [this, values, unit, bytes] {
          spare_.give(std::move(*values));
          note_done(unit, bytes);
        };
      } else {
        const auto writer = std::make_shared<ObjectWriter>(array.output, *output_, region);
        made->write_count = writer->items();
        made->write = [writer, values](std::size_t i) { writer->write(i, values->data()); };
        made->done = [this, writer, values, unit, bytes] {
          spare_.give(std::move(*values));
          note_objects(writer->objects_put(), writer->stored_bytes());
          note_done(unit, bytes);
        };
      }
    };
    return work;
  }

  PieceForm piece_form(std::size_t array, std::int64_t itemsize) const {
    const RechunkArray& of = owner_.arrays_[array];
    return {*pieces_, fmt::format("{}/pieces/{}", kWorkingFolder, array), of.source->shape,
            itemsize, of.plan};
  }

  void note_objects(std::uint64_t objects, std::uint64_t stored) {
    const std::lock_guard lock(mutex_);
    result_.objects += objects;
    result_.stored_bytes += stored;
  }
  void note_done(const Unit& unit, std::int64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      ++result_.regions_done;
    }
    run_.note_done(unit.number, bytes);
  }

  const Rechunk& owner_;
  const std::shared_ptr<OutputStore> output_;
  const SourceVersions source_;
  const Json identity_;
  RunRecord record_;
  std::shared_ptr<OutputStore> pieces_;  // null where one pass is enough
  RecordedRun run_;
  SpareRegions spare_;
  std::mutex mutex_;  // guards the fields below
  RechunkResult result_;
};

Rechunk::Rechunk(std::shared_ptr<Store> store, std::shared_ptr<const Hierarchy> hierarchy,
                 RechunkOptions options)
    : store_(std::move(store)),
      hierarchy_(std::move(hierarchy)),
      options_(std::move(options)),
      arrays_(choose_arrays(store_, hierarchy_, options_)) {
  threads_ = choose_threads();
  for (RechunkArray& array : arrays_) {
    if (is_strings(array)) continue;
    try {
      array.plan = plan_rechunk(array.source->shape, array.source->type.itemsize,
                                array.array->grid().chunk_shape(), array.output.chunks.object,
                                threads_.region_memory);
    } catch (Error& error) {
      throw error.at(array.source->path);
    }
  }
}

Rechunk::~Rechunk() = default;

Rechunk::Threads Rechunk::choose_threads() const {
  std::uint64_t read = 0, write = 0, encoder = 0, objects = 0, largest = 0;
  const RechunkArray* hungriest = nullptr;
  for (const RechunkArray& array : arrays_) {
    if (is_strings(array)) continue;
    const CodecChain& from = array.array->chain();
    read = std::max(read, 2 * from.decoded_size() + from.decoded_size() / 8 + from.scratch_bytes());
    const std::uint64_t chunk = array.output.chain->decoded_size();
    // Gathered, encoded, decoded again to compare.
    write = std::max(write, 2 * chunk + 2 * compressed_bound(array.output.compression, chunk));
    encoder = std::max(encoder, encoder_memory(array.output.compression, chunk));
    const std::uint64_t object =
        static_cast<std::uint64_t>(element_count(array.output.chunks.object)) *
        array.source->type.itemsize;
    if (array.output.chunks.is_sharded) objects = std::max(objects, 2 * object);
    if (options_.remote_output)
      write = std::max(write, 2 * chunk + 3 * object);  // with a request's body
    const std::uint64_t needs = from.decoded_size() + chunk + object;
    if (needs > largest) hungriest = &array;
    largest = std::max(largest, needs);
  }
  const int cores = options_.threads > 0
                        ? options_.threads
                        : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  Threads threads;
  threads.read = store_->is_local() ? cores : std::max(cores, kRemoteReads);
  threads.write = options_.remote_output ? std::max(cores, kRemoteWrites) : cores;
  const bool shared = store_->is_local() && !options_.remote_output;
  const std::uint64_t limit = options_.memory != 0 ? options_.memory : default_memory_budget();
  const std::uint64_t beside = memory_beside_values(limit, std::max(threads.read, threads.write));
  const std::uint64_t memory = limit - beside;
  const auto taken = [&] {
    const auto readers = static_cast<std::uint64_t>(threads.read),
               writers = static_cast<std::uint64_t>(threads.write);
    return objects + writers * encoder +
           (shared ? writers * std::max(read, write) : readers * read + writers * write);
  };
  while (taken() > memory / 2 && (threads.read > 1 || threads.write > 1)) {
    threads.read = std::max(1, threads.read / 2);
    threads.write = std::max(1, threads.write / 2);
  }
  if (taken() > memory - memory / 4)
    throw Error(
        ErrorCode::no_memory,
        fmt::format("one of its chunks takes {} to decode and encode, the program {}, and the "
                    "memory is {}; raise --memory or choose smaller chunks",
                    format_size(taken()), format_size(beside), format_size(limit)),
        hungriest->source->path);
  threads.region_memory = memory - taken();
  return threads;
}

bool Rechunk::has_two_passes() const {
  return std::any_of(arrays_.begin(), arrays_.end(),
                     [](const RechunkArray& array) { return array.plan.two_passes; });
}

std::uint64_t Rechunk::decoded_bytes() const {
  std::uint64_t bytes = 0;
  for (const RechunkArray& array : arrays_)
    if (!is_strings(array))
      bytes += static_cast<std::uint64_t>(element_count(array.source->shape)) *
               array.source->type.itemsize;
  return bytes;
}

std::vector<SourceArray> Rechunk::source() const {
  std::vector<SourceArray> arrays;
  for (const RechunkArray& array : arrays_) {
    const std::string& path = array.source->path;
    arrays.push_back(
        {.name = path.empty() ? "/" : path, .store = store_.get(), .metadata = array.source});
  }
  return arrays;
}

Json Rechunk::identity(const Json& source) const {
  Json arrays = Json::object();
  for (const RechunkArray& array : arrays_)
    arrays[array.output.path] = {{"chunks", dims_text(array.output.chunks.chunk)},
                                 {"objects", dims_text(array.output.chunks.object)},
                                 {"read", dims_text(array.plan.read_region)},
                                 {"write", dims_text(array.plan.write_region)}};
  Json identity = {{"command", "rechunk"},
                   {"version", 3},  // of the pieces, too
                   {"store", place_digest(*store_)},
                   {"source", source},
                   {"snapshot", hierarchy_->snapshot_id},
                   {"group", options_.group},
                   {"format", options_.format},
                   {"codec", compression_text(options_.compression)},
                   {"tasks", options_.tasks},
                   {"arrays", std::move(arrays)}};
  identity["id"] = fingerprint(identity.dump());
  return identity;
}

RechunkResult Rechunk::run(const std::shared_ptr<OutputStore>& output, const RechunkRun& how) {
  try {
    return Running(*this, output, how).run();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::interrupted || !how.cancelled || !how.cancelled()) throw;
    return {.state = RechunkResult::State::interrupted};
  }
}

}  // namespace batchfs
