#include "engine/store/cloud/object_requests.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <random>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/store/cloud/answer_findings.h"
#include "engine/store/cloud/retry_decision.h"
#include "engine/store/cloud/via/cache_dispatch.h"
#include "engine/store/http/http_transfer.h"
#include "engine/store/http/latency_quantile.h"
#include "engine/store/http/network_speed.h"
#include "engine/store/timer_thread.h"

namespace batchfs {

namespace {

constexpr int kMaxMoves = 3;
/// The threshold for slow requests until latencies have been measured.
constexpr std::int64_t kSlowUnknown = 3'000'000'000;
constexpr std::int64_t kSlowLeast = 25'000'000;
/// Hedges may add this share of requests, and a few to begin with.
constexpr double kHedgeShare = 0.03, kHedgesAtOnce = 4;

constexpr double kSupposedLatency = 0.05, kSupposedRate = 1e8;  // before the first answers

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

}  // namespace

RequestOptions request_options(const StoreConfig& config) {
  RequestOptions options;
  options.timeout = config.timeout;
  options.retries = config.retries;
  options.budget = std::max(options.budget, config.timeout * 5 / 3);
  return options;
}

class ObjectRequests::Impl {
 public:
  Impl(std::shared_ptr<ObjectService> service, std::shared_ptr<HttpClient> client,
       RequestOptions options)
      : service_(std::move(service)),
        client_(std::move(client)),
        options_(std::move(options)),
        dispatch_(options_.caches) {}

  ~Impl() {
    stop();
    timers_.stop();
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return outstanding_ == 0; });
  }

  void stop() {
    std::vector<std::shared_ptr<Run>> runs;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      runs.assign(runs_.begin(), runs_.end());
    }
    client_->stop();  // also fetches of credentials
    if (options_.caches) options_.caches->client().stop();
    for (const auto& run : runs) finish(run, interrupted());
  }

  // noexcept: an attempt that is counted and not sent would be waited for, as would a job whose
  // caller was unwound.
  void send(Job job, Done done) noexcept {
    auto run = std::make_shared<Run>();
    run->job = std::move(job);
    run->done = std::move(done);
    bool too_late = false;
    {
      const std::lock_guard lock(mutex_);
      too_late = stopping_;
      if (!too_late) runs_.insert(run);
      if (run->job.hedge) hedges_allowed_ = std::min(kHedgesAtOnce, hedges_allowed_ + kHedgeShare);
    }
    if (too_late) return run->done(interrupted());
    if (is_own_thread())
      timers_.post(0, [this, run] { attempt(run); });
    else
      attempt(run);
    watch();
  }

  bool is_own_thread() const {
    return client_->is_own_thread() ||
           (options_.caches && options_.caches->client().is_own_thread());
  }

  void post(std::int64_t time, std::function<void()> work) { timers_.post(time, std::move(work)); }

  std::vector<Store::Counter> counters() const {
    const HttpClient::Counters& http = client_->counters();
    std::vector<Store::Counter> all{{"requests", http.requests},
                                    {"requests_in_flight", http.in_flight},
                                    {"requests_waiting", http.waiting},
                                    {"request_limit", http.limit},
                                    {"connections", http.connections},
                                    {"bytes_received", http.bytes_received},
                                    {"throttled", http.throttled},
                                    {"retries", retries_},
                                    {"hedges", hedges_},
                                    {"hedges_won", hedges_won_},
                                    {"failures", failures_}};
    if (options_.caches)
      for (Store::Counter& counter : options_.caches->counters()) all.push_back(std::move(counter));
    return all;
  }

  Store::Speed speed() const {
    const std::lock_guard lock(mutex_);
    // The number in flight adapts to the need, so the limit counts here.
    const int most = HttpClient::Options{}.most_in_flight;
    const auto known = speed_.known();
    return known ? Store::Speed{known->latency, known->rate, most}
                 : Store::Speed{kSupposedLatency, kSupposedRate, most};
  }

 private:
  struct Attempt {
    std::shared_ptr<HttpProgress> progress = std::make_shared<HttpProgress>();
    HttpClient::RequestId id = 0;  // 0: not known yet
    bool is_hedge = false;
    std::optional<std::size_t> cache;  // that it was sent to
    bool is_uncached = false;

    /// Nanoseconds since it was sent or last received bytes; 0: it is not in flight.
    std::int64_t silence(std::int64_t now) const {
      const std::int64_t last = std::max(progress->started.load(), progress->last_received.load());
      return last == 0 ? 0 : now - last;
    }
  };

  /// A job until its end. All but the job is guarded by mutex_.
  struct Run {
    Job job;
    Done done;
    std::vector<std::shared_ptr<Attempt>> live;
    int tried = 0, refused = 0, moves = 0;
    bool hedged = false;  // in this round
    CacheRoute route;
    std::int64_t first_sent = 0;  // the time when the first attempt was on its way
    bool finished = false;
  };

  static std::exception_ptr interrupted() {
    return std::make_exception_ptr(Error(ErrorCode::interrupted, "the store is being closed"));
  }

  std::int64_t deadline(const Run& run) const {
    return run.first_sent + nanoseconds(options_.budget);
  }

  /// Sends once more. Not on the client's thread.
  void attempt(const std::shared_ptr<Run>& run, bool is_hedge = false) noexcept {
    const auto attempt = std::make_shared<Attempt>();
    attempt->is_hedge = is_hedge;
    double timeout = options_.timeout;
    {
      const std::lock_guard lock(mutex_);
      if (run->finished || stopping_) return;
      run->live.push_back(attempt);
      if (!is_hedge) {
        ++run->tried;
        run->hedged = false;
      }
      if (run->first_sent != 0)
        timeout =
            std::clamp(static_cast<double>(deadline(*run) - steady_now()) * 1e-9, 0.01, timeout);
      ++outstanding_;
    }
    HttpRequest request;
    try {
      request = run->job.build();
      service_->authorize(request);
    } catch (...) {
      arrived(run, attempt, std::current_exception());
      return;
    }
    request.timeout = timeout;
    request.progress = attempt->progress;
    if (!aim(run, attempt, request)) return;
    const ExpectedAnswers expected = expected_answers(request);
    const HttpClient::RequestId id = client_of(*attempt).send(
        std::move(request), [this, run, attempt, expected](HttpOutcome outcome) {
          arrived(run, attempt, std::move(outcome), expected);
        });
    bool too_late = false;
    {
      const std::lock_guard lock(mutex_);
      attempt->id = id;
      too_late = run->finished;
    }
    if (too_late) client_of(*attempt).cancel(id);
  }

  HttpClient& client_of(const Attempt& attempt) const {
    return attempt.cache ? options_.caches->client() : *client_;
  }

  // ---- shared caches ----
  /// Chooses a cache or the service. False: the run waits until fewer requests that no cache could
  /// answer are in flight at the service.
  bool aim(const std::shared_ptr<Run>& run, const std::shared_ptr<Attempt>& attempt,
           HttpRequest& request) {
    if (!run->job.shared) return true;
    const std::lock_guard lock(mutex_);
    const CacheDispatch::Target target = dispatch_.choose(run->route, request, *run->job.shared,
                                                          client_->counters().limit, steady_now());
    attempt->cache = target.cache;
    attempt->is_uncached = target.is_uncached;
    if (!target.must_wait) return true;
    std::erase(run->live, attempt);
    if (attempt->is_hedge) {
      run->hedged = false;  // until the next look
    } else {
      --run->tried;
      waiting_.push_back(run);
    }
    if (--outstanding_ == 0) idle_.notify_all();
    return false;
  }

  /// Resumes runs that wait for the service. Precondition: mutex_ is held.
  void start_waiting() {
    for (auto room = dispatch_.room(client_->counters().limit); room > 0 && !waiting_.empty();
         --room) {
      timers_.post(0, [this, run = waiting_.front()] { attempt(run); });
      waiting_.pop_front();
    }
  }

  /// Handles a cache's answer or failure. False: unusable; the run has ended or asks elsewhere.
  bool believe(const std::shared_ptr<Run>& run, const std::shared_ptr<Attempt>& attempt,
               const HttpOutcome& outcome, const Verdict& verdict) {
    const auto* response = std::get_if<HttpResponse>(&outcome);
    const std::int64_t now = steady_now();
    const std::lock_guard lock(mutex_);
    if (run->finished || stopping_) return false;
    if (verdict.kind == Verdict::ok) {
      const std::int64_t latency = attempt->progress->first_received - attempt->progress->started;
      dispatch_.answered(*attempt->cache, *response, latency, now);
      return true;
    }
    dispatch_.refuse(run->route, *attempt->cache, response != nullptr ? response->status : 0,
                     *verdict.error, now);
    std::erase(run->live, attempt);
    if (run->live.empty()) {
      run->tried = std::max(0, run->tried - 1);
      timers_.post(0, [this, run] { this->attempt(run); });
    }
    return false;
  }

  /// An attempt has ended.
  void arrived(const std::shared_ptr<Run>& run, const std::shared_ptr<Attempt>& attempt,
               HttpOutcome outcome, const ExpectedAnswers& expected = {}) {
    AnswerFinding finding;
    if (const HttpResponse* response = std::get_if<HttpResponse>(&outcome)) {
      finding = judge_answer(*service_, run->job.verify, *response, expected);
    } else {
      finding = judge_failure(std::get<std::exception_ptr>(outcome));
    }
    const bool counts = !attempt->cache || believe(run, attempt, outcome, finding.verdict);
    if (counts && settle(run, attempt, finding)) {
      const Verdict& verdict = finding.verdict;
      if (verdict.kind == Verdict::ok)
        finish(run, std::move(std::get<HttpResponse>(outcome)));
      else if (verdict.kind == Verdict::missing)
        finish(run, std::nullopt);
      else
        finish(run, std::make_exception_ptr(with_place(*run, *verdict.error)));
    }
    const std::lock_guard lock(mutex_);
    if (attempt->is_uncached) {
      dispatch_.left();
      start_waiting();
    }
    if (--outstanding_ == 0) idle_.notify_all();
  }

  static Error with_place(const Run& run, const Error& error) {
    return Error(error.code(), error.why(), run.job.where);
  }

  /// Takes the attempt off the run and decides the next step; true when `finding` is the run's end.
  bool settle(const std::shared_ptr<Run>& run, const std::shared_ptr<Attempt>& attempt,
              AnswerFinding& finding) {
    Verdict& verdict = finding.verdict;
    const std::int64_t now = steady_now();
    const std::int64_t started = attempt->progress->started,
                       answered = attempt->progress->first_received;
    const std::lock_guard lock(mutex_);
    std::erase(run->live, attempt);
    if (run->finished || stopping_) return false;
    if (run->first_sent == 0) run->first_sent = started != 0 ? started : now;
    switch (verdict.kind) {
      case Verdict::ok:
      case Verdict::missing:
        if (started != 0 && answered != 0) {
          if (!attempt->cache) latency_.add(answered - started);
          note_speed(now, static_cast<double>(answered - started) * 1e-9);
        }
        if (attempt->is_hedge) ++hedges_won_;
        if (!attempt->cache) last_answer_ = now;
        return true;
      case Verdict::failed:
        ++failures_;
        return true;
      case Verdict::moved:
        if (++run->moves <= kMaxMoves) {
          --run->tried;
          timers_.post(0, [this, run] { this->attempt(run); });
          return false;
        }
        ++failures_;
        verdict.error =
            Error(ErrorCode::io, "the service sends the request from one place to another");
        return true;
      case Verdict::retry:
        break;
    }
    if (!run->live.empty()) return false;  // the other one may still succeed
    if (is_load_refusal(options_, finding, last_answer_, now)) ++run->refused;
    const RetryHistory history{run->tried, run->refused, deadline(*run)};
    RetryDecision decision = decide_retry(options_, history, finding,
                                          std::uniform_real_distribution(0.0, 1.0)(random_), now);
    if (!decision.error) {
      ++retries_;
      timers_.post(decision.at, [this, run] { this->attempt(run); });
      return false;
    }
    ++failures_;
    verdict.error = std::move(decision.error);
    return true;
  }

  /// Called with mutex_ held, when an answer is complete.
  void note_speed(std::int64_t now, double latency) {
    std::uint64_t bytes = client_->counters().bytes_received;
    if (options_.caches) bytes += options_.caches->client().counters().bytes_received;
    speed_.note(now, latency, bytes);
  }

  void finish(const std::shared_ptr<Run>& run, Outcome outcome) {
    std::vector<std::pair<HttpClient*, HttpClient::RequestId>> others;
    Done done;
    {
      const std::lock_guard lock(mutex_);
      if (run->finished) return;
      run->finished = true;
      const std::int64_t now = steady_now();
      for (const auto& attempt : run->live) {
        if (!stopping_ && attempt->cache &&
            dispatch_.is_late(*attempt->cache, attempt->silence(now), now))
          dispatch_.overtaken(*attempt->cache, now);
        if (attempt->id != 0) others.emplace_back(&client_of(*attempt), attempt->id);
      }
      runs_.erase(run);
      done = std::move(run->done);
    }
    for (const auto& [client, id] : others) client->cancel(id);
    done(std::move(outcome));
  }

  // ---- hedges ----
  /// Looks again and again for attempts that stall, while there are any to look at.
  void watch() {
    if (!options_.hedge && !options_.caches) return;
    {
      const std::lock_guard lock(mutex_);
      if (watching_) return;
      watching_ = true;
    }
    timers_.post(steady_now() + pause(slow()), [this] { look(); });
  }

  /// Between two looks.
  std::int64_t pause(std::int64_t slow) const {
    return (options_.caches ? std::min(slow, CacheDispatch::kMinPatience) : slow) / 4;
  }

  std::int64_t slow() {
    const std::lock_guard lock(mutex_);
    return slow_locked();
  }
  std::int64_t slow_locked() const {
    const std::optional<std::int64_t> p99 = latency_.p99();
    return p99 ? std::max(kSlowLeast, *p99 + *p99 / 2) : kSlowUnknown;
  }

  void look() {
    std::vector<std::shared_ptr<Run>> slow_runs;
    std::vector<HttpClient::RequestId> hopeless;
    std::int64_t next = 0;
    {
      const std::lock_guard lock(mutex_);
      const std::int64_t now = steady_now(), slow = slow_locked();
      for (const auto& run : runs_)
        for (const auto& attempt : run->live)
          if (attempt->cache) dispatch_.heard(*attempt->cache, attempt->progress->last_received);
      for (const auto& run : runs_) {
        if (!run->job.hedge || run->hedged || run->live.size() != 1) continue;
        const Attempt& attempt = *run->live.front();
        const std::int64_t silence = attempt.silence(now);
        if (attempt.cache) {
          if (attempt.id != 0 && dispatch_.is_hopeless(*attempt.cache, silence, now)) {
            hopeless.push_back(attempt.id);
            continue;
          }
          if (!dispatch_.is_late(*attempt.cache, silence, now)) {
            if (!dispatch_.is_stuck(silence) || hedges_allowed_ < 1) continue;
            hedges_allowed_ -= 1;
          }
          run->route.refused.push_back(*attempt.cache);
        } else {
          if (!options_.hedge || silence == 0 || silence < slow || hedges_allowed_ < 1) continue;
          hedges_allowed_ -= 1;
        }
        ++hedges_;
        run->hedged = true;
        slow_runs.push_back(run);
      }
      watching_ = !runs_.empty();
      if (watching_) next = now + pause(slow);
      start_waiting();
    }
    for (const HttpClient::RequestId id : hopeless) options_.caches->client().cancel(id);
    for (const auto& run : slow_runs) attempt(run, true);
    if (next != 0) timers_.post(next, [this] { look(); });
  }

  const std::shared_ptr<ObjectService> service_;
  const std::shared_ptr<HttpClient> client_;
  const RequestOptions options_;
  std::atomic<std::uint64_t> retries_{0}, hedges_{0}, hedges_won_{0}, failures_{0};

  /// Guards the fields below; never held while calling out, except for a line of the log.
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::unordered_set<std::shared_ptr<Run>> runs_;
  LatencyQuantile latency_;
  NetworkSpeed speed_;
  double hedges_allowed_ = kHedgesAtOnce;
  std::int64_t last_answer_ = 0;  // when the service last had one
  CacheDispatch dispatch_;
  std::deque<std::shared_ptr<Run>> waiting_;  // for the service to have fewer uncached requests
  std::mt19937_64 random_{std::random_device{}()};
  int outstanding_ = 0;  // attempts whose callback has not returned
  bool watching_ = false;
  bool stopping_ = false;

  TimerThread timers_;  // last: its work uses all of the above
};

ObjectRequests::ObjectRequests(std::shared_ptr<ObjectService> service,
                               std::shared_ptr<HttpClient> client, RequestOptions options)
    : impl_(std::make_unique<Impl>(std::move(service), std::move(client), options)) {}
ObjectRequests::~ObjectRequests() = default;
void ObjectRequests::stop() { impl_->stop(); }

void ObjectRequests::send(Job job, Done done) { impl_->send(std::move(job), std::move(done)); }
bool ObjectRequests::is_own_thread() const { return impl_->is_own_thread(); }
void ObjectRequests::post(std::int64_t time, std::function<void()> work) {
  impl_->post(time, std::move(work));
}
std::vector<Store::Counter> ObjectRequests::counters() const { return impl_->counters(); }
Store::Speed ObjectRequests::speed() const { return impl_->speed(); }

std::optional<HttpResponse> ObjectRequests::send_and_wait(Job job) {
  std::promise<Outcome> promise;
  send(std::move(job), [&promise](Outcome outcome) { promise.set_value(std::move(outcome)); });
  Outcome outcome = promise.get_future().get();
  if (auto* error = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*error);
  return std::move(std::get<std::optional<HttpResponse>>(outcome));
}

}  // namespace batchfs
