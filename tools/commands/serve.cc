// batchfs serve: batches in memory for programs that ask, without a mount.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <semaphore>
#include <thread>

#include "engine/pipeline/engine.h"
#include "gpu/handoff/host_delivery.h"
#include "tools/cli/command.h"
#include "tools/cli/view_text.h"
#include "tools/service/background.h"
#include "tools/service/generations/first_generation.h"
#include "tools/service/generations/generation.h"
#include "tools/service/generations/served_generations.h"
#include "tools/service/inherited_descriptors.h"
#include "tools/service/log_level_signal.h"
#include "tools/service/reader_watch.h"
#include "tools/service/refresher.h"
#include "tools/service/serving.h"
#include "tools/service/serving_state.h"
#include "tools/service/session_file.h"

namespace batchfs {

namespace {

struct ServeOptions {
  StoreOptions store;
  GpuOptions gpu;
  std::vector<std::string> views;  // files, and "-"
  std::optional<StandardInput> input;
  std::string socket;
  std::string start;    // file, and "-"
  std::string session;  // file; empty: none
  TimeOptions time;
  double until_unused = 0;  // seconds; 0: until a signal
  bool background = false;
};

/// Waits for SIGINT, SIGTERM and SIGHUP, which end the serving.
sigset_t last_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

/// Ends the process at once on one of the signals while nothing is served yet: a store may keep it
/// waiting for minutes.
class Ending {
 public:
  /// Construct before any other thread is started, so that none takes the signals.
  Ending() : state_(std::make_shared<State>()) {
    const sigset_t signals = last_signals();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::thread([state = state_, signals] {
      int signal = 0;
      sigwait(&signals, &signal);
      if (!state->serving) ::_exit(128 + signal);
      state->ended.release();
    }).detach();  // an exception before anything is served must not wait for a signal
  }
  void serving() { state_->serving = true; }
  /// Has the effect of one of the signals. Call once, from any thread.
  void end() { state_->ended.release(); }
  void wait() { state_->ended.acquire(); }

 private:
  struct State {
    std::atomic<bool> serving = false;
    std::counting_semaphore<2> ended{0};  // a signal, and end()
  };
  const std::shared_ptr<State> state_;
};

/// Reads --start, which a daemon gets like standard input.
void read_start(ServeOptions& options) {
  if (options.views.size() > 1)
    throw Error(ErrorCode::invalid_argument, "one --view goes with it", "--start");
  const bool is_given = options.start == "-";
  if (is_given && options.input)
    throw Error(ErrorCode::invalid_argument,
                "standard input is the view; write \"start\" into that", "--start -");
  if (!options.input) options.input.emplace();
  options.input->start = is_given ? read_text(stdin, "standard input")
                                  : read_text_file(options.start, "the file of --start");
}

const char* const kNotContinued =
    "the store or a view has changed since it was opened, and its server has ended; close every "
    "dataset of it, in all processes, and open it again";

/// Serves until a signal comes, or until the last reader has left.
void serve(const ServeOptions& options, StartReport& report) {
  report.enter_daemon();
  Log log(is_stderr_read(!options.background));
  const LogLevelSignal log_level(log);
  Ending ending;
  // If the program that opens a store is killed, this process ends, however slow the store is.
  std::optional<ReaderWatch> opener;
  if (options.background && options.until_unused > 0) opener.emplace(STDERR_FILENO);
  raise_file_limit();
  GenerationOptions reading{.store = options.store,
                            .views = options.views,
                            .input = options.input,
                            .check_file = {},
                            .describes = false};
  reading.store.config.warn = [&log](const std::string& line) { log.warning(line); };
  std::optional<SessionFile> session_file;
  if (!options.session.empty()) session_file.emplace(options.session);
  if (session_file) reading.session = session_file->descriptor();
  Engine engine({.threads = options.store.threads,
                 .memory = engine_memory(options.store),
                 .wait = options.time.wait,
                 .idle = options.time.idle},
                log);
  handoff::HostDelivery host(engine);
  const auto check = [&](const Generation& generation) {
    check_handed_over(generation.views, host);
    warn_of_memory(generation.views, engine.budget().limit(), log);
    warn_of_samples(generation.views, log);
  };
  auto first = first_generation(reading, engine, log, kNotContinued);
  check(*first);
  if (session_file) first->begin(reading.session);
  const GpuDeliveries gpus(options.gpu, engine, host, log);
  ServingState state({options.socket, options.views, engine.budget().limit(), options.store.group},
                     engine, first, gpus, log);
  Refresher refresher(log);
  ending.serving();  // the socket must be removed at the end
  handoff::HandoffServer server(
      {.views = first->views,
       .deliveries = gpus.before(host),
       .unsupported_gpus = gpus.unsupported(),
       .refresh = [&refresher](bool force,
                               handoff::Refreshed done) { refresher.ask(force, std::move(done)); },
       .reserve = [&engine](std::uint64_t bytes,
                            const std::string& what) { return engine.reserve(bytes, what); },
       .held = first,
       .reading = first->reading_record(),
       .state_text = [&state](const auto& of,
                              handoff::StateText what) { return state.text(of, what); },
       .on_unused = options.until_unused > 0 ? std::function<void()>([&ending, &session_file] {
         if (session_file) session_file->leave();
         ending.end();
       })
                                             : nullptr,
       .first_reader_time = std::chrono::ceil<std::chrono::milliseconds>(
           std::chrono::duration<double>(options.until_unused))},
      handoff::Listener(options.socket), log);
  ServedGenerations generations(
      std::move(first),
      {.options = reading, .engine = engine, .handoff = server, .log = log, .check = check});
  const auto refresh = [&](bool force) {
    std::string changes = generations.refresh(force);
    state.show(generations.newest());
    return changes;
  };
  refresher.begin({.refresh = refresh,
                   .sweep = [&] { return generations.sweep(); },
                   .every = std::chrono::duration<double>(options.time.refresh)});
  log.info("serving batches at " + server.path());
  opener.reset();
  report.ready();
  ending.wait();
  if (refresher.stop(kStopTimeout)) return;
  // A read of a store on a network disk may never return: do not wait for it.
  server.end();
  ::_exit(1);
}

}  // namespace

CommandAction setup_serve(CLI::App& app) {
  const auto options = std::make_shared<ServeOptions>();
  add_store_options(app, options->store);
  add_other_stores(app, options->store);
  add_gpu_options(app, options->gpu);
  app.add_option("--view", options->views,
                 "serve the batches of this view; - reads it from standard input; may be given "
                 "several times")
      ->required()
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--socket", options->socket,
                 "path of the socket that readers connect to; removed at the end")
      ->required()
      ->type_name("PATH");
  app.add_option("--start", options->start,
                 "\"start\" of the mixture that is served, a JSON object; - reads it from standard "
                 "input")
      ->type_name("FILE");
  app.add_option(
         "--session", options->session,
         "a server that is killed leaves this file for the next, which then serves the same "
         "state of the store, or nothing; removed at the end")
      ->type_name("FILE");
  add_time_options(app, options->time);
  add_refresh_option(app, options->time);
  app.add_flag("--background", options->background, "return when readers can connect");
  app.add_option("--until-unused,--until_unused", options->until_unused,
                 "end with the last reader, or when none has come within SECONDS")
      ->check(CLI::Range(0.001, 1e6).description(""))
      ->type_name("SECONDS");
  return [options](Output&) {
    options->store.store = absolute_store(options->store.store);
    for (StoreOptions::Named& other : options->store.others) other.url = absolute_store(other.url);
    options->socket = std::filesystem::absolute(options->socket).string();
    if (!options->session.empty())
      options->session = std::filesystem::absolute(options->session).string();
    check_refresh(options->store, options->time.refresh);
    options->input = read_standard_input(options->views);
    if (!options->start.empty()) read_start(*options);
    for (std::string& view : options->views)
      if (view != "-") view = std::filesystem::absolute(view).string();
    if (options->background)
      return run_in_background([&options](StartReport& report) { serve(*options, report); },
                               descriptors_in(options->views));
    StartReport foreground;
    serve(*options, foreground);
  };
}

}  // namespace batchfs
