// batchfs top: what a mount does, live.

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
#include "tools/cli/store_options.h"
#include "tools/cli/terminal.h"
#include "tools/monitor/activity.h"
#include "tools/monitor/top_screen.h"
#include "tools/service/mounts.h"

namespace batchfs {

namespace {

constexpr char kCtrlC = 3, kCtrlD = 4;

struct TopOptions {
  std::string directory;
  double interval = 1;
  bool once = false, json = false;
};

Json look_at(const std::string& mount) {
  const std::string path = mount + "/.batchfs/status.json";
  return parse_json(read_text_file(path), path);
}

/// "/mnt/era5  s3://bucket/era5.zarr".
std::string title_of(const std::string& mount) {
  const std::string path = mount + "/.batchfs/config.json";
  const Json config = parse_json(read_text_file(path), path);
  const auto store = config.find("store");
  return mount +
         (store != config.end() && store->is_string() ? "  " + store->get<std::string>() : "");
}

/// Looks at the mount from a thread of its own: a mount that hangs must not hold up the keyboard.
class Watcher {
 public:
  Watcher(std::string mount, std::chrono::duration<double> interval) {
    std::thread([shared = shared_, mount = std::move(mount), interval] {
      run(*shared, mount, interval);
    }).detach();
  }
  /// Does not wait: a look that the mount does not answer cannot be taken back.
  ~Watcher() { shared_->stop = true; }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// Readable when there is news.
  int news() const { return shared_->woken; }

  struct State {
    std::optional<Activity> activity;
    std::string problem;  // why there is nothing newer
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

  static void run(Shared& shared, const std::string& mount,
                  std::chrono::duration<double> interval) {
    Json earlier;
    while (!shared.stop) {
      State next;
      try {
        Json later = look_at(mount);
        if (!earlier.is_null()) next.activity = activity(earlier, later);
        earlier = std::move(later);
      } catch (const Error& error) {
        next.problem = error.why();
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

void show_live(const TopOptions& options, const std::string& mount, const std::string& title) {
  Terminal terminal;
  Watcher watcher(mount, std::chrono::duration<double>(options.interval));
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
    if (!shown.problem.empty() && !mounted_type(mount))
      throw Error(ErrorCode::not_found, "the mount has ended", mount);
  }
}

void show(const TopOptions& options, Output& output) {
  const std::string mount = require_batchfs_mount(options.directory);
  if (!options.once && !options.json) return show_live(options, mount, title_of(mount));
  const std::string title = title_of(mount);
  const Json earlier = look_at(mount);
  std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
  const Activity now = activity(earlier, look_at(mount));
  if (options.json) return output.write(json_text(activity_json(now)) + "\n");
  for (const std::string& line : top_screen(now, title, 0, 0)) output.write(line + "\n");
}

}  // namespace

CommandAction setup_top(CLI::App& app) {
  const auto options = std::make_shared<TopOptions>();
  app.add_option("DIR", options->directory, "where it is mounted")->required()->type_name("");
  app.add_option("--interval", options->interval, "seconds between updates; the default is 1")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("SECONDS");
  app.add_flag("--once", options->once, "write the state once, after one interval, and end");
  app.add_flag("--json", options->json, "write JSON, for programs");
  return [options](Output& output) { show(*options, output); };
}

}  // namespace batchfs
