#include "engine/scan/source_versions.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/strings.h"
#include "engine/store/fingerprint.h"
#include "engine/store/state_listing.h"
#include "engine/view/rows/reached.h"
#include "engine/view/spec.h"
#include "engine/zarr/chunk_grid.h"

namespace batchfs {

namespace {

constexpr int kRemoteThreads = 64;       // each waits for one answer at a time
constexpr std::size_t kLocalBlock = 64;  // objects that a thread takes at a time
constexpr std::size_t kMaxBlocks = 256;  // that wait for a thread
constexpr std::size_t kMaxNamed = 3;     // arrays in a message
constexpr std::uint64_t kMissing = 0, kUnknown = 1, kUnreadable = 2;  // states

std::uint64_t combined(std::uint64_t a, std::uint64_t b) {
  return lasting_digest(fmt::format("{} {}", a, b));
}

/// Asks for the versions of the objects of all arrays. The calling thread finds the objects, others
/// ask.
class Asking {
 public:
  Asking(const std::vector<SourceArray>& arrays, const SourceVersions::Options& options)
      : arrays_(arrays), options_(options), sums_(arrays.size()) {
    for (const SourceArray& array : arrays) is_local_ = is_local_ && array.store->is_local();
  }

  /// The digests, by name.
  Json run() {
    {
      std::vector<std::jthread> threads;
      const Ending ending{*this};  // before the threads are joined
      for (int i = thread_count(); i > 0; --i) threads.emplace_back([this] { work(); });
      std::vector<std::size_t> asked;
      for (std::size_t a = 0; a < arrays_.size(); ++a)
        if (is_worth_listing(arrays_[a]))
          push({.array = a, .is_listing = true});
        else
          asked.push_back(a);
      ask(asked);
      ask(unlisted());
    }
    if (error_) std::rethrow_exception(error_);
    if (is_cancelled_) throw Error(ErrorCode::interrupted, "the run was interrupted");
    Json digests = Json::object();
    for (std::size_t a = 0; a < arrays_.size(); ++a)
      digests[arrays_[a].name] = fmt::format("{:016x}", combined(sums_[a], arrays_[a].positions));
    return digests;
  }
  bool has_missing() const { return has_missing_; }

 private:
  struct Block {
    std::size_t array = 0;
    std::vector<std::string> keys = {};
    bool is_listing = false;  // all of the array's objects, by listing them
  };
  struct Ending {
    Asking& of;
    ~Ending() {
      const std::lock_guard lock(of.mutex_);
      of.is_found_ = true;
      of.changed_.notify_all();
    }
  };

  int thread_count() const {
    const int cores = options_.threads > 0
                          ? options_.threads
                          : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    return is_local_ ? cores : std::max(cores, kRemoteThreads);
  }

  // ---- the calling thread ----

  /// A listing has a thousand objects a page, and one page follows the other; single objects are
  /// requested kRemoteThreads at a time.
  static bool is_worth_listing(const SourceArray& array) {
    constexpr std::uint64_t kMinObjects = 16, kMaxUnused = 16;
    if (dynamic_cast<StateListing*>(array.store) == nullptr) return false;
    if (array.lists) return true;
    const ChunkGrid grid(array.metadata->shape, array.metadata->chunk_shape);
    const std::uint64_t wanted = count_selected(grid, selection_of(array, grid));
    return wanted >= kMinObjects &&
           static_cast<std::uint64_t>(grid.chunk_count()) / kMaxUnused <= wanted;
  }

  static ChunkSelection selection_of(const SourceArray& array, const ChunkGrid& grid) {
    ChunkSelection selection = array.objects;
    selection.resize(grid.counts().size());
    return selection;
  }

  std::vector<std::size_t> unlisted() {
    const std::lock_guard lock(mutex_);
    return std::exchange(unlisted_, {});
  }

  /// One by one, and waits for the answers.
  void ask(const std::vector<std::size_t>& arrays) {
    for (const std::size_t a : arrays)
      if (!find_objects(a)) break;
    if (!block_.keys.empty()) push(std::exchange(block_, {}));
    wait();
  }

  /// False: the run is at its end.
  bool find_objects(std::size_t a) {
    const SourceArray& array = arrays_[a];
    const ChunkGrid grid(array.metadata->shape, array.metadata->chunk_shape);
    std::uint64_t found = 0;
    const auto take = [&](const Dims&, const std::string& key) {
      ++found;
      if (block_.array != a && !block_.keys.empty() && !push(std::exchange(block_, {})))
        return false;
      block_.array = a;
      block_.keys.push_back(key);
      return block_.keys.size() < (is_local_ ? kLocalBlock : 1) || push(std::exchange(block_, {}));
    };
    if (array.lists) {
      try {
        list_objects(*array.store, *array.metadata, grid, take, [](const auto&, const auto&) {});
      } catch (const Error&) {
        if (!options_.tolerates_unreadable) throw;
      }
      if (found < static_cast<std::uint64_t>(grid.chunk_count())) has_missing_ = true;
    } else {
      for_each_selected(grid, selection_of(array, grid), [&](const Dims& object) {
        return take(object, object_key(*array.metadata, object));
      });
    }
    return !is_ended();
  }

  bool push(Block block) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [this] {
      return blocks_.size() < kMaxBlocks || error_ || is_cancelled_;
    }))
      poll();
    poll();
    blocks_.push_back(std::move(block));
    changed_.notify_all();
    return !error_ && !is_cancelled_;
  }

  /// Waits until all objects that were found are done.
  void wait() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [this] {
      return error_ || is_cancelled_ || (blocks_.empty() && busy_ == 0);
    }))
      poll();
  }

  /// Precondition: mutex_ is held.
  void poll() {
    if (is_cancelled_ || !options_.cancelled || !options_.cancelled()) return;
    is_cancelled_ = true;
    for (const SourceArray& array : arrays_) array.store->stop();
  }

  bool is_ended() {
    const std::lock_guard lock(mutex_);
    return error_ || is_cancelled_;
  }

  // ---- the others ----

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock,
                    [this] { return !blocks_.empty() || is_found_ || error_ || is_cancelled_; });
      if (blocks_.empty() || error_ || is_cancelled_) return;
      const Block block = std::move(blocks_.front());
      blocks_.pop_front();
      ++busy_;
      changed_.notify_all();
      lock.unlock();
      std::uint64_t sum = 0;
      std::exception_ptr error;
      try {
        if (block.is_listing)
          sum = list(block.array);
        else
          for (const std::string& key : block.keys) sum += asked(arrays_[block.array], key);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      sums_[block.array] += sum;
      if (error && !error_) error_ = error;
      --busy_;
      changed_.notify_all();
    }
  }

  /// Sums do not depend on the order. Missing objects add nothing.
  static std::uint64_t contribution(std::uint64_t state, const std::string& key) {
    return lasting_digest(fmt::format("{} {}", state, key));
  }

  /// The sum of an array whose objects are listed; where they cannot be, 0, and the calling thread
  /// finds it among the unlisted ones.
  std::uint64_t list(std::size_t a) {
    const SourceArray& array = arrays_[a];
    const ArrayMetadata& metadata = *array.metadata;
    const ChunkGrid grid(metadata.shape, metadata.chunk_shape);
    const ChunkSelection selection = selection_of(array, grid);
    const std::size_t folder = metadata.path.empty() ? 0 : metadata.path.size() + 1;
    std::uint64_t sum = 0, found = 0;
    const auto take = [&](const std::string& key, std::uint64_t state) {
      const auto chunk = chunk_of_key(metadata, std::string_view(key).substr(folder));
      if (chunk && is_inside(grid, *chunk) && is_selected(selection, *chunk)) {
        sum += contribution(state, key);
        ++found;
      }
      return !is_ended();
    };
    bool is_listed = false;
    try {
      is_listed = dynamic_cast<StateListing&>(*array.store).list_states(metadata.path, take);
    } catch (const Error& error) {
      if (is_end(error) || !options_.tolerates_unreadable) throw;
    }
    if (!is_listed) {
      const std::lock_guard lock(mutex_);
      unlisted_.push_back(a);
      return 0;
    }
    if (found < count_selected(grid, selection)) has_missing_ = true;
    return sum;
  }

  static bool is_end(const Error& error) {
    return error.code() == ErrorCode::stale || error.code() == ErrorCode::interrupted;
  }

  std::uint64_t asked(const SourceArray& array, const std::string& key) {
    std::optional<std::uint64_t> state;
    try {
      state = array.store->state(key);
    } catch (const Error& error) {
      if (is_end(error) || !options_.tolerates_unreadable) throw;
      state = kUnreadable;
    }
    if (state == kMissing) {
      has_missing_ = true;
      return 0;
    }
    return contribution(state.value_or(kUnknown), key);
  }

  const std::vector<SourceArray>& arrays_;
  const SourceVersions::Options& options_;
  bool is_local_ = true;  // all stores are
  Block block_;           // of the calling thread
  std::atomic<bool> has_missing_{false};
  std::mutex mutex_;  // guards the fields below
  std::condition_variable changed_;
  std::deque<Block> blocks_;
  int busy_ = 0;           // blocks that are requested
  bool is_found_ = false;  // no more blocks will come
  bool is_cancelled_ = false;
  std::exception_ptr error_;  // the first
  std::vector<std::uint64_t> sums_;
  std::vector<std::size_t> unlisted_;  // arrays whose store does not list states
};

/// Have versions found no room in the memory for them?
bool forgets_versions(const std::vector<SourceArray>& arrays) {
  return std::any_of(arrays.begin(), arrays.end(), [](const SourceArray& array) {
    const std::vector<Store::Counter> counters = array.store->counters();
    return std::any_of(counters.begin(), counters.end(), [](const Store::Counter& counter) {
      return counter.name.ends_with("object_versions_not_kept") && counter.value > 0;
    });
  });
}

class Collector {
 public:
  void add(SourceArray array) {
    const std::string& path = array.metadata->path;
    const auto [known, is_new] = numbers_.emplace(std::pair(array.store, path), arrays_.size());
    if (is_new) {
      // The place of a store is private.
      const int occurrence = ++occurrences_[path];
      array.name = path.empty() ? "/" : path;
      if (occurrence > 1) array.name += fmt::format(" (store {})", occurrence);
      return arrays_.push_back(std::move(array));
    }
    // Several variables of a view belong to one array: the union of their reads.
    SourceArray& other = arrays_[known->second];
    other.positions = combined(other.positions, array.positions);
    for (std::size_t d = 0; d < other.objects.size(); ++d) {
      if (!other.objects[d]) continue;
      if (d >= array.objects.size() || !array.objects[d]) {
        other.objects[d].reset();
        continue;
      }
      std::vector<std::int64_t> both;
      std::set_union(other.objects[d]->begin(), other.objects[d]->end(), array.objects[d]->begin(),
                     array.objects[d]->end(), std::back_inserter(both));
      other.objects[d] = std::move(both);
    }
  }

  /// A coordinate of `of`, which is of one store.
  void add_whole(const Variable& coordinate, const Variable& of) {
    for (const auto& part : coordinate.parts)
      if (part->strings == nullptr) add_whole(*part, of);
    if (coordinate.is_concatenated()) {
      const auto number = static_cast<std::size_t>(std::max(0, of.part));
      if (number < coordinate.parts.size() && coordinate.parts[number]->strings != nullptr)
        add_whole(*coordinate.parts[number], of);
      return;
    }
    if (coordinate.array != nullptr)
      add({.store = &coordinate.array->store(), .metadata = coordinate.metadata});
    else if (coordinate.strings != nullptr && of.array != nullptr)
      add({.store = &of.array->store(), .metadata = coordinate.metadata});
  }

  void add_view(const View& view) {
    const auto components = view.components();
    for (const auto& component : components) add_view(*component);
    if (!components.empty()) return;
    for (std::uint32_t v = 0; v < view.variables().size(); ++v) add_reached(view, v);
    const Dataset& dataset = *view.dataset();
    for (const Variable* variable : view.variables()) {
      for (const std::string& dim : variable->dims)
        if (const Variable* const index = dataset.index_of(dim)) add_whole(*index, *variable);
      for (const ViewCoordinate& coordinate : view.coordinates())
        if (const Variable* const found = dataset.find(coordinate.name))
          add_whole(*found, *variable);
    }
  }

  std::vector<SourceArray> take() { return std::move(arrays_); }

 private:
  void add_reached(const View& view, std::uint32_t number) {
    const Variable& variable = *view.variables()[number];
    if (variable.array == nullptr) return;
    // The view is one part of a split; the others reach the rest.
    const std::vector<Positions> reached =
        view.spec().split ? positions_selected(view, number) : positions_to_read(view, number);
    SourceArray array{.store = &variable.array->store(), .metadata = variable.metadata};
    const ChunkGrid grid(variable.metadata->shape, variable.metadata->chunk_shape);
    for (std::size_t d = 0; d < reached.size(); ++d) {
      const Positions& positions = reached[d];
      array.objects.emplace_back(chunks_of_positions(positions, variable.metadata->chunk_shape[d]));
      if (static_cast<std::int64_t>(array.objects.back()->size()) == grid.counts()[d])
        array.objects.back().reset();
      array.positions = combined(array.positions, static_cast<std::uint64_t>(positions.size()));
      if (positions.is_range()) {
        if (positions.size() > 0)
          array.positions = combined(array.positions, static_cast<std::uint64_t>(positions[0]));
        continue;
      }
      for (std::int64_t i = 0; i < positions.size(); ++i)
        array.positions = combined(array.positions, static_cast<std::uint64_t>(positions[i]));
    }
    add(std::move(array));
  }

  std::vector<SourceArray> arrays_;
  std::map<std::pair<Store*, std::string>, std::size_t> numbers_;  // by store and path
  std::map<std::string, int> occurrences_;                         // of a path
};

}  // namespace

std::vector<SourceArray> source_arrays(const View& view) {
  Collector collector;
  collector.add_view(view);
  return collector.take();
}

SourceVersions::SourceVersions(std::vector<SourceArray> arrays, Options options)
    : arrays_(std::move(arrays)), options_(std::move(options)), digests_(ask()) {}

Json SourceVersions::ask() const {
  Asking asking(arrays_, options_);
  Json digests = asking.run();
  must_confirm_ = must_confirm_ || asking.has_missing();
  return digests;
}

void SourceVersions::confirm() const {
  if (must_confirm_ || forgets_versions(arrays_)) confirm_all();
}

void SourceVersions::confirm_all() const {
  const std::string differing = differing_arrays(digests_, ask());
  if (differing.empty()) return;
  throw Error(ErrorCode::stale,
              fmt::format("the store has changed while it was read: objects of {} are of another "
                          "version; run the command again when its writer has finished",
                          differing));
}

std::string differing_arrays(const Json& a, const Json& b) {
  std::vector<std::string> names;
  for (const auto& [name, digest] : a.items())
    if (!b.contains(name) || b.at(name) != digest) names.push_back("'" + name + "'");
  for (const auto& [name, digest] : b.items())
    if (!a.contains(name)) names.push_back("'" + name + "'");
  const std::size_t more = names.size() - std::min(names.size(), kMaxNamed);
  names.resize(std::min(names.size(), kMaxNamed));
  std::string text = join(names, ", ");
  if (more > 0) text += " and " + counted(static_cast<std::int64_t>(more), "more array");
  return text;
}

}  // namespace batchfs
