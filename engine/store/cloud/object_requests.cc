#include "engine/store/cloud/object_requests.h"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <mutex>
#include <random>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/store/http/http_transfer.h"
#include "engine/store/http/latency_quantile.h"
#include "engine/store/http/response_checks.h"
#include "engine/store/timer_thread.h"

namespace batchfs {

namespace {

constexpr int kMaxMoves = 3;
/// What counts as slow until latencies have been measured.
constexpr std::int64_t kSlowUnknown = 3'000'000'000;
constexpr std::int64_t kSlowLeast = 25'000'000;
/// Hedges may add this share of requests, and a few to begin with.
constexpr double kHedgeShare = 0.03, kHedgesAtOnce = 4;

/// What is known of the network's speed: the mean latency of so many answers; the best rate of
/// windows, of which older ones count less.
constexpr double kAnswersAveraged = 64;
constexpr std::int64_t kRateWindow = 250'000'000;
constexpr double kRateFades = 0.99;
constexpr double kSupposedLatency = 0.05, kSupposedRate = 1e8;  // before the first answers

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

bool may_pass(ErrorCode code) { return code == ErrorCode::io || code == ErrorCode::timed_out; }

/// Answers that only some requests may get.
struct Expected {
  bool range = false;      // 416: nothing there at this offset
  bool condition = false;  // 304: not modified
};

bool is_conditional(const HttpRequest& request) {
  return std::any_of(request.headers.begin(), request.headers.end(), [](const auto& header) {
    return header.first == "If-None-Match" || header.first == "If-Modified-Since";
  });
}

/// What an answer, or its lack, comes to.
struct Finding {
  Verdict verdict;
  std::optional<double> wait;  // seconds that the server asks for
};

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
      : service_(std::move(service)), client_(std::move(client)), options_(options) {}

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
    client_->stop();  // also what credentials are being fetched with
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
    if (client_->is_own_thread())
      timers_.post(0, [this, run] { attempt(run); });
    else
      attempt(run);
    watch();
  }

  void post(std::int64_t time, std::function<void()> work) { timers_.post(time, std::move(work)); }

  std::vector<Store::Counter> counters() const {
    const HttpClient::Counters& http = client_->counters();
    return {{"requests", http.requests},
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
  }

  Store::Speed speed() const {
    const std::lock_guard lock(mutex_);
    // How many are in flight adapts to the need, so what counts is how many could be.
    const int most = HttpClient::Options{}.most_in_flight;
    return rate_ > 0 ? Store::Speed{usual_latency_, rate_, most}
                     : Store::Speed{kSupposedLatency, kSupposedRate, most};
  }

 private:
  struct Attempt {
    std::shared_ptr<HttpProgress> progress = std::make_shared<HttpProgress>();
    HttpClient::RequestId id = 0;  // 0: not known yet
    bool is_hedge = false;
  };

  /// A job until its end. All but the job is guarded by mutex_.
  struct Run {
    Job job;
    Done done;
    std::vector<std::shared_ptr<Attempt>> live;
    int tried = 0, moves = 0;
    bool hedged = false;          // in this round
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
    const Expected expected{request.range.has_value(), is_conditional(request)};
    const HttpClient::RequestId id =
        client_->send(std::move(request), [this, run, attempt, expected](HttpOutcome outcome) {
          arrived(run, attempt, std::move(outcome), expected);
        });
    bool too_late = false;
    {
      const std::lock_guard lock(mutex_);
      attempt->id = id;
      too_late = run->finished;
    }
    if (too_late) client_->cancel(id);
  }

  Finding judge(const Run& run, const HttpResponse& response, const Expected& expected) {
    try {
      Verdict verdict;
      const bool is_answer = (response.status == 416 && expected.range) ||
                             (response.status == 304 && expected.condition);
      if (!is_answer) verdict = service_->classify(response);
      if (verdict.kind == Verdict::ok && run.job.verify) run.job.verify(response);
      return {verdict, verdict.kind == Verdict::retry ? retry_after(response) : std::nullopt};
    } catch (...) {
      Error error = error_of(std::current_exception());
      const Verdict::Kind kind = may_pass(error.code()) ? Verdict::retry : Verdict::failed;
      return {{kind, std::move(error)}, std::nullopt};
    }
  }

  /// An attempt has ended.
  void arrived(const std::shared_ptr<Run>& run, const std::shared_ptr<Attempt>& attempt,
               HttpOutcome outcome, const Expected& expected = {}) {
    Finding finding;
    if (const HttpResponse* response = std::get_if<HttpResponse>(&outcome)) {
      finding = judge(*run, *response, expected);
    } else {
      Error error = error_of(std::get<std::exception_ptr>(outcome));
      const Verdict::Kind kind = may_pass(error.code()) ? Verdict::retry : Verdict::failed;
      finding = {{kind, std::move(error)}, std::nullopt};
    }
    if (settle(run, attempt, finding)) {
      const Verdict& verdict = finding.verdict;
      if (verdict.kind == Verdict::ok)
        finish(run, std::move(std::get<HttpResponse>(outcome)));
      else if (verdict.kind == Verdict::missing)
        finish(run, std::nullopt);
      else
        finish(run, std::make_exception_ptr(with_place(*run, *verdict.error)));
    }
    const std::lock_guard lock(mutex_);
    if (--outstanding_ == 0) idle_.notify_all();
  }

  static Error with_place(const Run& run, const Error& error) {
    return Error(error.code(), error.why(), run.job.where);
  }

  /// Takes the attempt off the run and decides what follows; true when `finding` is the run's end.
  bool settle(const std::shared_ptr<Run>& run, const std::shared_ptr<Attempt>& attempt,
              Finding& finding) {
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
          latency_.add(answered - started);
          note_speed(now, static_cast<double>(answered - started) * 1e-9);
        }
        if (attempt->is_hedge) ++hedges_won_;
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
    if (!run->live.empty()) return false;  // the other one may still bring it
    const std::string tries =
        fmt::format("; tried {}", run->tried == 1 ? "once" : fmt::format("{} times", run->tried));
    if (run->tried <= options_.retries) {
      const double longest = std::min(
          options_.longest_delay,
          options_.first_delay * static_cast<double>(1ull << std::min(run->tried - 1, 30)));
      double delay = std::uniform_real_distribution<double>(0, longest)(random_);
      // A little jitter as well on what the server names: others were told the same.
      if (finding.wait) delay = *finding.wait + std::min(delay, 0.1 * *finding.wait);
      const std::int64_t at = now + nanoseconds(std::min(delay, 1e6));
      if (at < deadline(*run)) {
        ++retries_;
        timers_.post(at, [this, run] { this->attempt(run); });
        return false;
      }
      if (finding.wait && run->tried == 1) {
        verdict.error = Error(
            verdict.error->code(),
            fmt::format("{}; it asks to wait for {:.0f} s", verdict.error->why(), *finding.wait));
        ++failures_;
        return true;
      }
    }
    ++failures_;
    verdict.error = Error(verdict.error->code(), verdict.error->why() + tries);
    return true;
  }

  /// Called with mutex_ held, when an answer is complete.
  void note_speed(std::int64_t now, double latency) {
    answers_ = std::min(answers_ + 1, kAnswersAveraged);
    usual_latency_ += (latency - usual_latency_) / answers_;
    const std::uint64_t bytes = client_->counters().bytes_received;
    const std::int64_t window = now - window_start_;
    if (window < kRateWindow) return;
    // The best of late: what comes while little is asked for says nothing about the network.
    if (window_start_ != 0)
      rate_ = std::max(rate_ * kRateFades, static_cast<double>(bytes - window_bytes_) /
                                               static_cast<double>(window) * 1e9);
    window_start_ = now;
    window_bytes_ = bytes;
  }

  void finish(const std::shared_ptr<Run>& run, Outcome outcome) {
    std::vector<HttpClient::RequestId> others;
    Done done;
    {
      const std::lock_guard lock(mutex_);
      if (run->finished) return;
      run->finished = true;
      for (const auto& attempt : run->live)
        if (attempt->id != 0) others.push_back(attempt->id);
      runs_.erase(run);
      done = std::move(run->done);
    }
    for (const HttpClient::RequestId id : others) client_->cancel(id);
    done(std::move(outcome));
  }

  // ---- hedges ----
  /// Looks again and again for attempts that stall, while there are any to look at.
  void watch() {
    if (!options_.hedge) return;
    {
      const std::lock_guard lock(mutex_);
      if (watching_) return;
      watching_ = true;
    }
    timers_.post(steady_now() + slow() / 4, [this] { look(); });
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
    std::int64_t next = 0;
    {
      const std::lock_guard lock(mutex_);
      const std::int64_t now = steady_now(), slow = slow_locked();
      for (const auto& run : runs_) {
        if (!run->job.hedge || run->hedged || run->live.size() != 1) continue;
        const HttpProgress& progress = *run->live.front()->progress;
        const std::int64_t last = std::max(progress.started.load(), progress.last_received.load());
        if (last == 0 || now - last < slow || hedges_allowed_ < 1) continue;
        hedges_allowed_ -= 1;
        ++hedges_;
        run->hedged = true;
        slow_runs.push_back(run);
      }
      watching_ = !runs_.empty();
      if (watching_) next = now + slow / 4;
    }
    for (const auto& run : slow_runs) attempt(run, true);
    if (next != 0) timers_.post(next, [this] { look(); });
  }

  const std::shared_ptr<ObjectService> service_;
  const std::shared_ptr<HttpClient> client_;
  const RequestOptions options_;
  std::atomic<std::uint64_t> retries_{0}, hedges_{0}, hedges_won_{0}, failures_{0};

  mutable std::mutex mutex_;  // guards what follows; never held while calling out
  std::condition_variable idle_;
  std::unordered_set<std::shared_ptr<Run>> runs_;
  LatencyQuantile latency_;
  double usual_latency_ = 0, rate_ = 0, answers_ = 0;
  std::int64_t window_start_ = 0;
  std::uint64_t window_bytes_ = 0;
  double hedges_allowed_ = kHedgesAtOnce;
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
