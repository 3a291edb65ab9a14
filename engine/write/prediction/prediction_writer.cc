#include "engine/write/prediction/prediction_writer.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/blocked_signals.h"
#include "engine/base/system_error.h"
#include "engine/pipeline/thread_priority.h"
#include "engine/write/prediction/prediction_objects.h"
#include "engine/write/prediction/sample_values.h"
#include "engine/write/run_identity.h"

namespace batchfs {

namespace {

constexpr int kMaxThreads = 1024;
constexpr std::array<const char*, 5> kOverlaps = {"error", "trim", "mean", "cosine", "last"};

/// Errors of the system end with the next step.
Error with_next_step(const Error& error) {
  std::string why = error.why();
  constexpr std::string_view kCommand = "run the same command again";
  if (const std::size_t at = why.find(kCommand); at != std::string::npos)
    why.replace(at, kCommand.size(), "run the same program again");
  else if (error.code() == ErrorCode::access_denied)
    why += "; name an output that this user may write, or change its permissions";
  else if (error.code() == ErrorCode::io && why.find("; ") == std::string::npos)
    why += "; run the same program again: it continues";
  return {error.code(), why, error.where()};
}

template <class Work>
auto explained(Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw with_next_step(error);
  }
}

}  // namespace

Overlap parse_overlap(const std::string& text) {
  const auto found = std::find(kOverlaps.begin(), kOverlaps.end(), text);
  if (found == kOverlaps.end())
    throw Error(ErrorCode::invalid_argument, fmt::format("overlap='{}' is unknown: pass one of {}",
                                                         text, fmt::join(kOverlaps, ", ")));
  return static_cast<Overlap>(found - kOverlaps.begin());
}

const char* overlap_name(Overlap overlap) { return kOverlaps[static_cast<std::size_t>(overlap)]; }

class PredictionWriter::State {
 public:
  State(std::vector<PredictedArray> arrays, PredictionSamples samples, PredictionOptions options)
      : options_(std::move(options)),
        folder_(options_.output),
        objects_(std::move(arrays), std::move(samples), options_, folder_),
        open_(options_.memory),
        threads_(options_.threads > 0 ? std::min(options_.threads, kMaxThreads)
                                      : default_threads()) {
    if (options_.rank < 0 || options_.rank >= options_.world)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("rank {} is not below world {}", options_.rank, options_.world));
    begin();
  }

  ~State() {
    try {
      const std::unique_lock lock(closing_);
      if (!closed_) drain();
    } catch (...) {
      // Another failure may be on its way; written samples stay.
    }
  }

  void write(const std::string& tensor, std::span<const std::int64_t> samples,
             const PredictedValues& values) {
    const std::shared_lock lock(closing_);
    check();
    std::vector<std::size_t> rows;
    for (const std::int64_t sample : samples) rows.push_back(objects_.row_of(sample));
    std::vector<std::pair<std::size_t, SampleValues>> arrays;
    for (std::size_t a = 0; a < objects_.placements().size(); ++a)
      if (objects_.placements()[a].array().tensor == tensor)
        arrays.emplace_back(a, SampleValues(objects_.placements()[a], values, rows.size()));
    if (arrays.empty()) refuse_tensor(tensor);
    for (const auto& [array, of_array] : arrays)
      for (std::size_t i = 0; i < rows.size(); ++i) add(array, of_array, i, rows[i]);
  }

  std::vector<bool> done() const { return objects_.samples_there(); }
  bool finished() const { return folder_.has("zarr.json"); }
  std::uint64_t missing() const {
    const std::vector<bool> there = done();
    return static_cast<std::uint64_t>(std::count(there.begin(), there.end(), false));
  }

  void close() {
    const std::unique_lock lock(closing_);
    if (closed_) return;
    closed_ = true;
    // The rank may be written again whatever happens here.
    const std::unique_ptr<OutputStore::Lock> rank_lock = std::move(rank_lock_);
    drain();
    if (!finished()) {
      folder_.store().put(ended_key(options_.rank), "ended\n");
      finish();
    }
    // Also by a rank that began while another one finished the output.
    if (finished()) folder_.store().discard_working_files();
  }

  void suspend() {
    const std::unique_lock lock(closing_);
    if (closed_) return;
    closed_ = true;
    const std::unique_ptr<OutputStore::Lock> rank_lock = std::move(rank_lock_);
    drain();
  }

 private:
  static int default_threads() {
    return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 4);
  }

  std::string ended_key(int rank) const {
    return fmt::format(".batchfs/ended-{}-of-{}", rank, options_.world);
  }

  void begin() {
    claim_output(folder_.store(), objects_.identity());
    if (!finished()) {
      rank_lock_ = folder_.store().lock(fmt::format("lock-rank-{}", options_.rank));
      if (rank_lock_ == nullptr)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("another process writes rank {} of '{}'; pass each process a rank "
                                "of its own, or wait until it has ended",
                                options_.rank, folder_.root()));
    }
    folder_.remove(ended_key(options_.rank));
    for (std::size_t a = 0; a < objects_.placements().size(); ++a)
      done_.push_back(objects_.objects_there(a));
    for (const ObjectKey& key : objects_.objects_with_parts())
      open_.note_parts(key, objects_.samples_in_parts(key));
  }

  void check() {
    if (closed_)
      throw Error(ErrorCode::invalid_argument,
                  "the output is closed; create it again, with the same arguments: it continues");
    const std::lock_guard lock(mutex_);
    if (failed_) std::rethrow_exception(failed_);
  }

  [[noreturn]] void refuse_tensor(const std::string& tensor) const {
    std::set<std::string> known;
    for (const Placement& placement : objects_.placements()) known.insert(placement.array().tensor);
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the output has nothing for the tensor '{}'; it has {}", tensor,
                            fmt::join(known, ", ")));
  }

  bool is_done(const ObjectKey& key) {
    const std::lock_guard lock(mutex_);
    return done_[key.array][static_cast<std::size_t>(key.number)];
  }

  void add(std::size_t array, const SampleValues& values, std::size_t sample, std::size_t row) {
    const Placement& placement = objects_.placements()[array];
    const std::int64_t* const starts = objects_.starts_of(row);
    SampleValues::Numbers numbers;
    bool has_numbers = false;
    placement.each_object(starts, [&](std::int64_t number) {
      const ObjectKey key{array, number};
      if (is_done(key)) return;
      if (!has_numbers) numbers = values.numbers(row);
      has_numbers = true;
      Buffer cut = values.cut(placement.boxes(number, starts), sample, numbers);
      if (auto complete = open_.add(key, objects_.samples().numbers[row], std::move(cut),
                                    placement.expected(number)))
        start(std::move(*complete));
      while (std::optional<OpenObjects::Taken> excess = open_.take_excess()) keep(*excess);
    });
  }

  /// Has a thread encode and put a complete object: another one, or this one where the system
  /// starts none. Threads end when nothing is left: the process is the user's, and may fork.
  void start(OpenObjects::Taken taken) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return running_ < 2 * threads_; });
    complete_.push_back(std::move(taken));
    ++running_;
    if (encoding_ == threads_) return;
    std::erase_if(encoders_, [](const std::future<void>& encoder) {
      return encoder.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
    try {
      // So that no thread is waited for with the lock held.
      encoders_.reserve(encoders_.size() + 1);
      const BlockedSignals blocked{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
      encoders_.push_back(std::async(std::launch::async, [this] {
        lower_thread_priority();
        encode();
      }));
      ++encoding_;
    } catch (const std::exception&) {
      if (encoding_ > 0) return;
      ++encoding_;
      lock.unlock();
      encode();
    }
  }

  /// Encodes and puts complete objects until none is left.
  void encode() {
    std::unique_lock lock(mutex_);
    while (!complete_.empty()) {
      OpenObjects::Taken object = std::move(complete_.front());
      complete_.pop_front();
      lock.unlock();
      std::exception_ptr error;
      try {
        put(object.key, std::move(object.samples));
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error && !failed_) failed_ = std::make_exception_ptr(explain(error));
      --running_;
      ended_.notify_all();
    }
    --encoding_;
  }

  void put(const ObjectKey& key, ObjectSamples samples) {
    if (!objects_.add(key, std::move(samples))) return;
    const std::lock_guard lock(mutex_);
    done_[key.array][static_cast<std::size_t>(key.number)] = true;
  }

  /// Leaves the samples of an incomplete object as a part.
  void keep(const OpenObjects::Taken& taken) {
    objects_.put_part(taken.key, taken.samples);
    put(taken.key, {});
  }

  /// Ends all work: incomplete objects become parts.
  void drain() {
    {
      std::unique_lock lock(mutex_);
      ended_.wait(lock, [this] { return running_ == 0; });
      if (failed_) std::rethrow_exception(failed_);
    }
    while (std::optional<OpenObjects::Taken> taken = open_.take_oldest()) keep(*taken);
  }

  void finish() {
    const std::unique_ptr<OutputStore::Lock> lock = folder_.wait_for_lock("lock-finish");
    if (finished()) return;
    for (int rank = 0; rank < options_.world; ++rank)
      if (!folder_.has(ended_key(rank))) return;
    objects_.put_complete();
    if (const std::uint64_t lacking = objects_.objects_lacking(); lacking > 0)
      throw Error(ErrorCode::io,
                  fmt::format("the output is not finished: {} of {} samples are missing, in {} "
                              "chunks of '{}'; create it again with the same arguments and write "
                              "the batches that are remaining",
                              missing(), objects_.samples().size(), lacking, folder_.root()));
    objects_.put_rest();
  }

  const PredictionOptions options_;
  const PredictionFolder folder_;
  const PredictionObjects objects_;
  OpenObjects open_;
  std::unique_ptr<OutputStore::Lock> rank_lock_;
  /// Held while values are written, and alone while the output is closed. Lock order: before
  /// mutex_.
  std::shared_mutex closing_;
  bool closed_ = false;
  std::mutex mutex_;  // guards the fields below
  std::condition_variable ended_;
  std::vector<std::vector<bool>> done_;      // by array and object
  std::deque<OpenObjects::Taken> complete_;  // that wait for a thread
  int running_ = 0;                          // objects that are encoded, or wait for it
  int encoding_ = 0;                         // threads
  std::exception_ptr failed_;
  const int threads_;
  std::vector<std::future<void>> encoders_;  // last: their work uses the members above
};

PredictionWriter::PredictionWriter(std::vector<PredictedArray> arrays, PredictionSamples samples,
                                   PredictionOptions options)
    : state_(explained([&] {
        return std::make_unique<State>(std::move(arrays), std::move(samples), std::move(options));
      })) {}

PredictionWriter::~PredictionWriter() = default;

void PredictionWriter::write(const std::string& tensor, std::span<const std::int64_t> samples,
                             const PredictedValues& values) {
  explained([&] { state_->write(tensor, samples, values); });
}

std::vector<bool> PredictionWriter::done() const {
  return explained([&] { return state_->done(); });
}

std::uint64_t PredictionWriter::missing() const {
  return explained([&] { return state_->missing(); });
}

bool PredictionWriter::finished() const { return state_->finished(); }

void PredictionWriter::close() {
  explained([&] { state_->close(); });
}

void PredictionWriter::suspend() {
  explained([&] { state_->suspend(); });
}

}  // namespace batchfs
