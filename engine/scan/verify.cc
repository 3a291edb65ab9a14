#include "engine/scan/verify.h"

#include <algorithm>
#include <deque>
#include <future>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "engine/base/budget.h"
#include "engine/pipeline/executor.h"
#include "engine/scan/shard_members.h"
#include "engine/scan/verify_form.h"
#include "engine/scan/verify_slots.h"
#include "engine/view/rows/reached.h"
#include "engine/view/spec.h"

namespace batchfs {

namespace {

constexpr int kMaxRemoteReads = 128;  // the store itself finds out how many requests are best
constexpr std::size_t kMaxIndexes = 16;

using FormPtr = std::shared_ptr<VerifyForm>;
using Answer = std::variant<Store::VersionedRead, std::exception_ptr>;

int thread_count(int asked) {
  return asked > 0 ? asked : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

/// One scan. The calling thread finds the objects and starts the reads; the executor verifies the
/// bytes.
class Scan {
 public:
  Scan(const std::shared_ptr<Store>& store, const VerifyOptions& options,
       VerifyCollector& collector)
      : store_(store),
        options_(options),
        memory_(options.memory != 0 ? options.memory : default_memory_budget()),
        collector_(collector),
        slots_(memory_, store->is_local() ? 2 * thread_count(options.threads) : kMaxRemoteReads,
               [this] { return tick(); }),
        executor_(thread_count(options.threads)) {}

  /// Work in flight uses this object.
  ~Scan() { slots_.wait(); }
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;

  void run(const std::vector<VerifyTarget>& targets) {
    std::vector<FormPtr> forms;
    for (const VerifyTarget& target : targets) {
      try {
        forms.push_back(std::make_shared<VerifyForm>(store_, target, memory_));
        const std::uint64_t chunks = count_selected(forms.back()->grid, forms.back()->selection);
        if (__builtin_add_overflow(all_, static_cast<std::int64_t>(chunks), &all_))
          all_ = INT64_MAX;
      } catch (const Error& error) {
        if (options_.task > 0) continue;
        collector_.not_checked(target.metadata->path.empty() ? "/" : target.metadata->path,
                               error.why());
      }
    }
    for (const FormPtr& form : forms) {
      if (!tick()) break;
      verify(form);
    }
    slots_.wait();
    report_progress();  // also where nothing had to be waited for
    for (const FormPtr& form : forms) {
      const std::uint64_t known = form->found + form->unknown;
      const std::uint64_t all = count_selected(form->grid, form->selection);
      collector_.add_array(cancelled_ ? known : all, known);
    }
  }

 private:
  // ---- the calling thread ----

  bool tick() {
    if (!cancelled_ && options_.cancelled && options_.cancelled()) {
      cancelled_ = true;
      collector_.interrupt();
      store_->stop();
    }
    report_progress();
    return !cancelled_;
  }

  void report_progress() const {
    if (options_.progress) options_.progress(std::min(done_, all_), all_);
  }

  void verify(const FormPtr& form) {
    const std::int64_t before = done_;
    // A store with a history lists its arrays, not their chunks.
    const bool lists = form->selects_all && store_->can_list() && !store_->revision();
    const auto take = [&](const Dims& object, const std::string& key) {
      if (!tick()) return false;
      if (!is_mine(key)) return true;
      if (form->shards) return start_index(form, object, key, lists);
      const bool going = start_object(form, object, key, lists);
      if (done_ < INT64_MAX) ++done_;
      return going;
    };
    if (lists) {
      try {
        list_objects(*store_, *form->metadata, form->objects, take,
                     [this](const std::string& key, const std::string& why) {
                       if (is_mine(key)) collector_.note(key, why);
                     });
      } catch (const Error& error) {
        find(*form, "", form->metadata->path, damage::kUnreadable,
             "cannot be listed: " + error.why());
      }
    } else {
      for_each_selected(form->objects, form->object_selection, [&](const Dims& object) {
        return take(object, object_key(*form->metadata, object));
      });
    }
    while (!indexes_.empty()) finish_index();
    // Missing chunks count as done, too.
    const auto chunks = static_cast<std::int64_t>(count_selected(form->grid, form->selection));
    if (__builtin_add_overflow(before, chunks, &done_)) done_ = INT64_MAX;
  }

  bool is_mine(const std::string& key) const {
    if (options_.tasks == 1) return true;
    return XXH3_64bits(key.data(), key.size()) % static_cast<std::uint64_t>(options_.tasks) ==
           static_cast<std::uint64_t>(options_.task);
  }

  /// `listed`: the store listed it.
  bool start_object(const FormPtr& form, const Dims& chunk, const std::string& key, bool listed) {
    const std::string name = form->chunk_name(chunk);
    std::uint64_t stored =
        form->strings ? 0 : form->chain->decoded_size();  // until the answer arrives
    if (store_->is_local()) {
      try {
        const std::optional<std::uint64_t> size = store_->size(key);
        if (!size) return gone(*form, name, key, listed);
        stored = *size;
        check_size(*form, stored);
      } catch (const Error& error) {
        ++form->found;
        collector_.add_chunks(1, 0);
        return find_error(*form, name, key, error, damage::kSize);
      }
    }
    const std::uint64_t memory = form->memory_for(stored);
    if (!slots_.acquire(memory)) return false;
    const std::uint64_t most =
        form->strings ? StringArray::kMaxChunk : form->chain->encoded_bound();
    ByteRange range{0, store_->is_local() ? most + 1 : UINT64_MAX};
    range.largest =
        2 * most + 4096;  // bounds a hostile size; a slightly wrong one is reported exactly
    read(key, range, memory, [this, form, name, key, listed](Answer& answer) {
      verify_object(*form, name, key, listed, answer);
    });
    return true;
  }

  bool start_index(const FormPtr& form, const Dims& shard, const std::string& key, bool listed) {
    const std::uint64_t bytes = form->shards->index_bytes;
    const std::size_t ahead =
        std::clamp<std::size_t>(memory_ / 4 / (4 * bytes + 1), 1, kMaxIndexes);
    while (indexes_.size() >= ahead) finish_index();
    const auto promise = std::make_shared<std::promise<Answer>>();
    indexes_.push_back({form, shard, key, listed, promise->get_future()});
    if (!slots_.acquire(0)) {
      promise->set_value(
          std::make_exception_ptr(Error(ErrorCode::interrupted, "the scan was ended")));
      return false;
    }
    read(key, {0, bytes, form->shards->index_at_end}, 0,
         [promise](Answer& answer) { promise->set_value(std::move(answer)); });
    return true;
  }

  void finish_index() {
    Index index = std::move(indexes_.front());
    indexes_.pop_front();
    while (index.answer.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready)
      tick();
    const std::int64_t before = done_;
    try {
      Answer answer = index.answer.get();
      if (auto* failed = std::get_if<std::exception_ptr>(&answer)) std::rethrow_exception(*failed);
      verify_shard(index, std::get<Store::VersionedRead>(answer));
    } catch (const Error& error) {
      index.form->unknown += index.form->chunks_in(index.shard);
      find_error(*index.form, "", index.key, error, damage::kShardIndex);
    }
    const std::uint64_t chunks = index.form->chunks_in(index.shard);
    done_ = before + static_cast<std::int64_t>(std::min<std::uint64_t>(
                         chunks, static_cast<std::uint64_t>(INT64_MAX - before)));
  }

  struct Index {
    FormPtr form;
    Dims shard;
    std::string key;
    bool listed;
    std::future<Answer> answer;
  };

  void verify_shard(const Index& at, Store::VersionedRead& read_index) {
    const FormPtr& form = at.form;
    if (!read_index.bytes) {
      gone(*form, "", at.key, at.listed);
      return;
    }
    const std::optional<std::uint64_t> size =
        read_index.object_size ? read_index.object_size : store_->size(at.key);
    if (!size) throw Error(ErrorCode::stale, "the shard has gone while it was read");
    const ShardIndex index(*form->shards, read_index.bytes->span(), *size);
    const Dims per = form->per_object();
    const auto chunk_of = [&](std::int64_t number) {
      Dims chunk = form->shards->grid.chunk(number);
      for (std::size_t d = 0; d < chunk.size(); ++d) chunk[d] += at.shard[d] * per[d];
      return chunk;
    };
    const auto is_inside = [&](const Dims& chunk) {
      for (std::size_t d = 0; d < chunk.size(); ++d)
        if (chunk[d] >= form->grid.counts()[d]) return false;
      return true;
    };
    auto members = shard_members(
        *form->shards, index, *size, [&](std::int64_t number, const std::string& why) {
          const Dims chunk = chunk_of(number);
          if (!is_selected(form->selection, chunk)) return;
          if (!index_places(index, number)) {  // else it is among the members
            collector_.add_chunks(1, 0);
            if (is_inside(chunk)) ++form->found;
          }
          find(*form, form->chunk_name(chunk), at.key, damage::kShardIndex, why);
        });
    std::erase_if(members, [&](const ShardMember& member) {
      const Dims chunk = chunk_of(member.number);
      if (!is_selected(form->selection, chunk)) return true;
      if (is_inside(chunk)) ++form->found;
      try {
        form->chain->check_stored_size(member.length);
        return false;
      } catch (const Error& error) {
        collector_.add_chunks(1, 0);
        find(*form, form->chunk_name(chunk), at.key, damage::kSize, error.why());
        return true;
      }
    });
    collector_.add_object(0);
    for (const MemberRun& run : member_runs(members)) {
      const std::uint64_t memory = form->memory_for(run.length);
      if (!slots_.acquire(memory)) return;
      std::vector<RunChunk> chunks;
      for (std::size_t i = run.first; i < run.end; ++i)
        chunks.push_back({form->chunk_name(chunk_of(members[i].number)),
                          members[i].offset - run.offset, members[i].length});
      done_ += static_cast<std::int64_t>(chunks.size());
      read(at.key, {run.offset, run.length}, memory,
           [this, form, key = at.key, chunks = std::move(chunks)](Answer& answer) {
             verify_run(*form, key, chunks, answer);
           });
    }
  }

  static bool index_places(const ShardIndex& index, std::int64_t number) {
    try {
      return index.entry(number).has_value();
    } catch (const Error&) {
      return false;
    }
  }

  // ---- any thread ----

  /// Holds a slot, which is released after `use`. `use` gets the answer on the executor.
  void read(const std::string& key, ByteRange range, std::uint64_t memory,
            std::function<void(Answer&)> use) {
    auto finish = [this, memory, use = std::move(use)](Answer& answer) {
      use(answer);
      answer = {};  // releases its bytes before their memory is granted to others
      slots_.release(memory);
    };
    if (store_->is_local()) {
      executor_.post(kPrefetch, [this, key, range, finish = std::move(finish)] {
        Answer answer;
        store_->read_version_async(key, range, {},
                                   [&answer](Answer got) { answer = std::move(got); });
        finish(answer);
      });
      return;
    }
    store_->read_version_async(key, range, {}, [this, finish = std::move(finish)](Answer got) {
      const auto answer = std::make_shared<Answer>(std::move(got));
      executor_.post(kPrefetch, [finish, answer] { finish(*answer); });
    });
  }

  void verify_object(VerifyForm& form, const std::string& name, const std::string& key, bool listed,
                     Answer& answer) {
    const char* what = damage::kUnreadable;
    bool found = false;
    try {
      if (auto* failed = std::get_if<std::exception_ptr>(&answer)) std::rethrow_exception(*failed);
      const auto& got = std::get<Store::VersionedRead>(answer);
      if (!got.bytes) {
        gone(form, name, key, listed);
        return;
      }
      ++form.found;
      found = true;
      collector_.add_object(got.bytes->size());
      what = damage::kSize;
      check_size(form, got.object_size.value_or(got.bytes->size()));
      what = damage::kData;
      collector_.add_chunks(1, decode(form, *got.bytes));
    } catch (...) {
      const Error error = error_of(std::current_exception());
      if (!found) ++form.found;
      collector_.add_chunks(1, 0);
      find_error(form, name, key, error, what);
    }
  }

  struct RunChunk {
    std::string name;
    std::uint64_t offset, length;
  };

  void verify_run(const VerifyForm& form, const std::string& key,
                  const std::vector<RunChunk>& chunks, Answer& answer) {
    try {
      if (auto* failed = std::get_if<std::exception_ptr>(&answer)) std::rethrow_exception(*failed);
      const auto& got = std::get<Store::VersionedRead>(answer);
      if (!got.bytes) throw Error(ErrorCode::stale, "the shard has gone while it was read");
      collector_.add_bytes(got.bytes->size());
      Buffer out(form.chain->is_plain() ? 0 : form.chain->decoded_size());
      for (const RunChunk& chunk : chunks) {
        try {
          if (chunk.offset + chunk.length > got.bytes->size())
            throw Error(ErrorCode::stale, "the shard became shorter while it was read");
          if (!form.chain->is_plain())
            form.chain->decode(got.bytes->span().subspan(chunk.offset, chunk.length), out.span());
          collector_.add_chunks(1, form.chain->decoded_size());
        } catch (const Error& error) {
          collector_.add_chunks(1, 0);
          find_error(form, chunk.name, key, error, damage::kData);
        }
      }
    } catch (...) {
      const Error error = error_of(std::current_exception());
      for (const RunChunk& chunk : chunks)
        find_error(form, chunk.name, key, error, damage::kUnreadable);
    }
  }

  static void check_size(const VerifyForm& form, std::uint64_t size) {
    if (form.chain != nullptr) return form.chain->check_stored_size(size);
    if (size > StringArray::kMaxChunk)
      throw Error(ErrorCode::not_supported,
                  "chunks of strings of more than 256 MB are not supported");
  }

  /// Returns the bytes decoded.
  static std::uint64_t decode(const VerifyForm& form, const Buffer& stored) {
    if (form.strings) {
      std::uint64_t bytes = 0;
      for (const std::string& string : form.strings->decode(stored)) bytes += string.size();
      return bytes;
    }
    if (!form.chain->is_plain()) {  // else the size suffices
      Buffer out(form.chain->decoded_size());
      form.chain->decode(stored.span(), out.span());
    }
    return form.chain->decoded_size();
  }

  /// An object that is not there: missing, unless the store listed it.
  bool gone(const VerifyForm& form, const std::string& chunk, const std::string& key, bool listed) {
    if (listed)
      find(form, chunk, key, damage::kUnreadable, "the store lists it, but does not have it");
    return true;
  }

  bool find_error(const VerifyForm& form, const std::string& chunk, const std::string& key,
                  const Error& error, const char* what) {
    if (error.code() == ErrorCode::interrupted) return true;  // the end of the scan, no damage
    find(form, chunk, key, error.code() == ErrorCode::corrupt ? what : damage::kUnreadable,
         error.why());
    return true;
  }

  void find(const VerifyForm& form, const std::string& chunk, const std::string& key,
            const char* what, const std::string& why) {
    collector_.find({form.metadata->path, chunk, key, what, why});
  }

  const std::shared_ptr<Store> store_;
  const VerifyOptions& options_;
  const std::uint64_t memory_;
  VerifyCollector& collector_;
  std::int64_t done_ = 0, all_ = 0;  // chunks
  bool cancelled_ = false;
  WorkSlots slots_;
  std::deque<Index> indexes_;
  Executor executor_;  // last: its work uses all of the above
};

}  // namespace

VerifyTarget selected_chunks(const View& view, std::uint32_t number) {
  const Variable& variable = *view.variables()[number];
  // The view is one part of a split; the others reach the rest.
  const std::vector<Positions> reached =
      view.spec().split ? positions_selected(view, number) : positions_to_read(view, number);
  VerifyTarget target{variable.metadata, ChunkSelection(variable.array->grid().counts().size())};
  for (std::size_t d = 0; d < variable.dims.size(); ++d)
    (*target.chunks)[d] = chunks_of_positions(reached[d], variable.array->grid().chunk_shape()[d]);
  return target;
}

void verify_arrays(const std::shared_ptr<Store>& store, const std::vector<VerifyTarget>& targets,
                   const VerifyOptions& options, VerifyCollector& collector) {
  Scan(store, options, collector).run(targets);
}

}  // namespace batchfs
