// batchfs top: live activity of a mount or a server.

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/base/json_text.h"
#include "tools/cli/command.h"
#include "tools/cli/terminal.h"
#include "tools/monitor/activity.h"
#include "tools/monitor/top_screen.h"
#include "tools/service/state_source.h"

namespace batchfs {

namespace {

constexpr char kCtrlC = 3, kCtrlD = 4;

struct TopOptions {
  std::string place;
  double interval = 1;
  bool once = false, json = false;
};

/// "/mnt/era5  s3://bucket/era5.zarr".
std::string title_of(const StateSource& daemon) {
  const Json config = daemon.json(handoff::StateText::config);
  const auto store = config.find("store");
  return daemon.path() +
         (store != config.end() && store->is_string() ? "  " + store->get<std::string>() : "");
}

/// Polls the daemon in its own thread: a daemon that hangs must not block the keyboard.
class Watcher {
 public:
  Watcher(StateSource daemon, std::chrono::duration<double> interval) {
    std::thread([shared = shared_, daemon = std::move(daemon), interval] {
      run(*shared, daemon, interval);
    }).detach();
  }
  /// Does not wait: a look that the daemon does not answer cannot be taken back.
  ~Watcher() { shared_->stop = true; }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// Readable when there is news.
  int news() const { return shared_->woken; }

  struct State {
    std::optional<Activity> activity;
    std::string problem;  // why there is nothing newer
    bool ended = false;
  };
  State state() {
    std::uint64_t count;
    [[maybe_unused]] const ssize_t n = ::read(shared_->woken, &count, sizeof count);
    const std::lock_guard lock(shared_->mutex);
    return shared_->state;
  }

 private:
  struct Shared {
    const int woken = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    std::atomic<bool> stop{false};
    std::mutex mutex;
    State state;
    ~Shared() { ::close(woken); }
  };

  static void run(Shared& shared, const StateSource& daemon,
                  std::chrono::duration<double> interval) {
    Json earlier;
    while (!shared.stop) {
      State next;
      try {
        Json later = daemon.json(handoff::StateText::status);
        if (!earlier.is_null()) next.activity = activity(earlier, later);
        earlier = std::move(later);
      } catch (const Error& error) {
        next.problem = error.why();
        next.ended = daemon.has_ended(error);
      }
      if (next.activity || !next.problem.empty()) {
        const std::lock_guard lock(shared.mutex);
        shared.state = std::move(next);
      }
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t n = ::write(shared.woken, &one, sizeof one);
      const auto until = std::chrono::steady_clock::now() + interval;
      while (!shared.stop && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

void show_live(const TopOptions& options, const StateSource& daemon, const std::string& title) {
  Terminal terminal;
  Watcher watcher(daemon, std::chrono::duration<double>(options.interval));
  Watcher::State shown;
  for (;;) {
    const Terminal::Size size = terminal.size();
    std::vector<std::string> lines;
    if (shown.activity)
      lines = top_screen(*shown.activity, title, size.columns, size.rows);
    else
      lines = {cut_to("batchfs top  " + title, size.columns)};
    if (!shown.problem.empty())
      lines = {lines[0], cut_to("It does not answer: " + shown.problem, size.columns)};
    terminal.draw(lines);
    const Terminal::Input input = terminal.wait(std::chrono::minutes(1), watcher.news());
    if (input.event == Terminal::Event::ended) return;
    if (input.event == Terminal::Event::key &&
        (input.key == 'q' || input.key == kCtrlC || input.key == kCtrlD))
      return;
    if (input.event == Terminal::Event::none) shown = watcher.state();
    if (shown.ended) throw Error(ErrorCode::not_found, "it has ended", daemon.path());
  }
}

void show(const TopOptions& options, Output& output) {
  const StateSource daemon(options.place);
  const std::string title = title_of(daemon);
  if (!options.once && !options.json) return show_live(options, daemon, title);
  const Json earlier = daemon.json(handoff::StateText::status);
  std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
  const Activity now = activity(earlier, daemon.json(handoff::StateText::status));
  if (options.json) return output.write(json_text(activity_json(now)) + "\n");
  for (const std::string& line : top_screen(now, title, 0, 0)) output.write(line + "\n");
}

}  // namespace

CommandAction setup_top(CLI::App& app) {
  const auto options = std::make_shared<TopOptions>();
  add_place(app, options->place);
  app.add_option("--interval", options->interval, "seconds between updates; the default is 1")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("SECONDS");
  app.add_flag("--once", options->once, "write the state once, after one interval, and end");
  app.add_flag("--json", options->json, "write JSON, for programs");
  return [options](Output& output) { show(*options, output); };
}

}  // namespace batchfs
