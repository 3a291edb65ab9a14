#include "engine/pipeline/engine.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/dataset.h"
#include "engine/pipeline/engine_errors.h"

namespace batchfs {

namespace {

/// A reader that waits for memory fails when none was released for this long, or for half of its
/// deadline.
constexpr std::uint64_t kMaxPatience = 30'000'000'000;  // nanoseconds

int default_threads(int asked) {
  return asked > 0 ? asked : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::uint64_t nanoseconds(double seconds) {
  return seconds > 0 ? static_cast<std::uint64_t>(seconds * 1e9) : UINT64_MAX;
}

}  // namespace

Engine::Engine(Options options, Log& log)
    : log_(log),
      stores_{options.store},
      prefetching_(options.prefetch),
      budget_(options.memory != 0 ? options.memory : default_memory_budget()),
      deliveries_(trace_, std::move(options.served)),
      cache_(counters_),
      look_ahead_(cache_, budget_.limit()),
      kept_(cache_, budget_.limit()),
      executor_(default_threads(options.threads), options.kind),
      scheduler_(executor_, budget_, cache_, counters_, trace_, log,
                 [this] { return reclaimer_.release_kept(); }),
      ticker_([this] { tick(); }),
      idle_(nanoseconds(options.idle), ticker_),
      waiters_(nanoseconds(options.wait), ticker_, counters_, log),
      table_(waiters_, counters_,
             [this](const BatchRequest& request) { return prefetcher_.wanted(request); }),
      reclaimer_(budget_, memory_files_, table_, cache_, scheduler_),
      queue_(
          budget_, ticker_, std::min(kMaxPatience, nanoseconds(options.wait) / 2),
          {.reserve = [this](std::uint64_t bytes) { return reclaimer_.reserve_for_reader(bytes); },
           .is_at_work = [this] { return table_.is_at_work() || arrays_.is_at_work(); }}),
      assembler_(environment()),
      read_ahead_(environment(), assembler_),
      arrays_({.waiters = waiters_,
               .queue = queue_,
               .reclaimer = reclaimer_,
               .budget = budget_,
               .files = memory_files_,
               .scheduler = scheduler_,
               .cache = cache_,
               .deliveries = deliveries_,
               .on_read = [this] { idle_.touch(); }}),
      held_(budget_.reserve(std::min(options.held, budget_.limit()))) {}

BatchAssembler::Environment Engine::environment() {
  return {.table = table_,
          .waiters = waiters_,
          .queue = queue_,
          .reclaimer = reclaimer_,
          .budget = budget_,
          .files = memory_files_,
          .scheduler = scheduler_,
          .executor = executor_,
          .prefetcher = prefetcher_,
          .look_ahead = look_ahead_,
          .cache = cache_,
          .kept = kept_,
          .counters = counters_,
          .trace = trace_,
          .log = log_};
}

Engine::~Engine() { stop(); }

bool Engine::stop(double seconds) {
  table_.stop();
  ticker_.stop();
  scheduler_.interrupt();  // everything in progress ends as interrupted
  // At once: reads in progress may take long to notice.
  queue_.stop();
  waiters_.stop();
  std::vector<std::weak_ptr<Store>> stores;
  {
    const std::lock_guard lock(stores_mutex_);
    stores = stores_;
  }
  for (const auto& each : stores)
    if (const auto store = each.lock()) store->stop();
  scheduler_.wait();
  return executor_.stop(seconds);
}

void Engine::add_store(const std::shared_ptr<Store>& store) {
  const std::lock_guard lock(stores_mutex_);
  std::erase_if(stores_, [](const auto& each) { return each.expired(); });
  stores_.push_back(store);
}

Budget::Reservation Engine::reserve(std::uint64_t bytes, const std::string& what) {
  Budget::Reservation reservation = reclaimer_.reserve_for_reader(bytes);
  if (reservation || bytes == 0) return reservation;
  throw Error(
      ErrorCode::no_memory,
      fmt::format("there is no room for {}, which take {}: {} of the memory budget of {} is "
                  "in use; close batches that are done with, or give more with --memory",
                  what, format_size(bytes), format_size(budget_.used()),
                  format_size(budget_.limit())));
}

Budget::Reservation Engine::hold(std::uint64_t bytes) {
  bytes = std::min(bytes, budget_.limit());
  Budget::Reservation reservation = reclaimer_.reserve_for_reader(bytes);
  return reservation ? std::move(reservation) : budget_.reserve(bytes);
}

void Engine::forget(const Store& store) {
  const auto is_of_store = [&store](const View& view) {
    const auto& variables = view.variables();
    return std::any_of(variables.begin(), variables.end(), [&store](const Variable* variable) {
      return variable->array != nullptr && &variable->array->store() == &store;
    });
  };
  reclaimer_.release(table_.drop_views(is_of_store));
  prefetcher_.forget(is_of_store);
  look_ahead_.forget_views(is_of_store);
  kept_.forget(is_of_store);
  cache_.forget(store);
}

WaiterId Engine::open(const BatchRequest& request, BatchDone done) {
  const std::uint64_t since = Trace::now();
  const auto shared = std::make_shared<BatchDone>(std::move(done));
  Waiter waiter{.done =
                    [this, request, since, shared](std::shared_ptr<const Batch> batch,
                                                   std::exception_ptr error) {
                      deliveries_.record_delivery(request, batch.get(), since, error);
                      (*shared)(std::move(batch), error);
                    },
                .since = since};
  BatchTable::Opened opened = table_.open(request, waiter);
  if (opened.refused) {
    (*shared)(nullptr, ending_error());
    return 0;
  }
  idle_.touch();
  if (opened.reprioritize != nullptr) scheduler_.reprioritize(opened.reprioritize);
  if (opened.first && prefetching_) read_ahead_.learn(request, opened.ready == nullptr);
  if (opened.assemble != nullptr) assembler_.post(opened.assemble);
  reclaimer_.release(std::move(opened.dropped));
  if (opened.ready != nullptr) {
    if (opened.first) deliveries_.record_delivery(request, opened.ready.get(), since, nullptr);
    (*shared)(opened.ready, nullptr);
  }
  if (opened.first && prefetching_) read_ahead_.make_next(request);
  return opened.waiter;
}

std::shared_ptr<const Batch> Engine::open(const BatchRequest& request) {
  // Shared: a worker is still inside of set_value() when this thread continues.
  const auto promise = std::make_shared<std::promise<std::shared_ptr<const Batch>>>();
  open(request, [promise](std::shared_ptr<const Batch> batch, std::exception_ptr error) {
    if (error)
      promise->set_exception(error);
    else
      promise->set_value(std::move(batch));
  });
  return promise->get_future().get();
}

void Engine::tick() {
  queue_.serve();
  if (idle_.is_over(waiters_.count() > 0)) {
    look_ahead_.forget_all();
    kept_.forget([](const View&) { return true; });
    reclaimer_.release_all();
  }
  waiters_.expire();
}

Engine::State Engine::state() const {
  return {.threads = executor_.threads(),
          .cache_bytes = cache_.bytes(),
          .readers_waiting = waiters_.count(),
          .waiting_for_memory = queue_.readers(),
          .streams = prefetcher_.streams()};
}

}  // namespace batchfs
