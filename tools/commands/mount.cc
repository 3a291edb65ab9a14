// batchfs mount: a store's arrays and batches as files.

#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/base/log.h"
#include "engine/base/system_error.h"
#include "engine/pipeline/engine.h"
#include "fs/file_system.h"
#include "fs/fuse/fuse_session.h"
#include "fs/generations/known_inodes.h"
#include "fs/session_state.h"
#include "gpu/handoff/host_delivery.h"
#include "gpu/handoff/server.h"
#include "tools/cli/command.h"
#include "tools/service/background.h"
#include "tools/service/generations/first_generation.h"
#include "tools/service/generations/generation.h"
#include "tools/service/generations/mounted_generations.h"
#include "tools/service/inherited_descriptors.h"
#include "tools/service/log_level_signal.h"
#include "tools/service/mount_options.h"
#include "tools/service/mount_service.h"
#include "tools/service/mounts.h"
#include "tools/service/refresher.h"
#include "tools/service/served_store.h"
#include "tools/service/serving.h"
#include "tools/service/stored_descriptors.h"
#include "tools/service/supervisor.h"

namespace batchfs {

namespace {

std::string check_directory(const std::string& directory, bool takes_over) {
  const std::string place = "the mount point '" + directory + "'";
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::absolute(directory).parent_path(), error)) {
    // Does not look into it: perhaps nobody answers there until this process does.
    if (takes_over && mounted_type(mount_path(directory)) == "fuse.batchfs")
      return mount_path(directory);
    end_dead_mount(directory);
  }
  const std::filesystem::path path = std::filesystem::canonical(directory, error);
  if (error == std::errc::not_connected)
    throw Error(ErrorCode::io, "what was mounted there has died; end it with umount", place);
  if (error == std::errc::no_such_file_or_directory)
    throw Error(ErrorCode::not_found, "no such directory; make it with mkdir", place);
  if (error) throw Error(ErrorCode::io, error.message(), place);
  if (!std::filesystem::is_directory(path, error))
    throw Error(ErrorCode::invalid_argument, "it is not a directory", place);
  return path.string();
}

/// Throws if this machine cannot mount anything.
void check_device() {
  std::error_code error;
  if (!std::filesystem::exists("/dev/fuse", error))
    throw Error(ErrorCode::not_supported,
                "nothing can be mounted without /dev/fuse; `batchfs doctor` says how to get it, "
                "`batchfs serve` serves batches without a mount");
}

/// The contents of .batchfs/config.json, without secrets.
Json config_json(const MountOptions& options, const OpenedStore& opened, const Engine& engine) {
  Json config = Json::object();
  config["store"] = opened.store->url();
  if (!options.store.group.empty()) config["group"] = options.store.group;
  tell_other_stores(opened, config);
  config["directory"] = options.directory;
  config["views"] = options.views;
  config["memory"] = options.store.memory != 0 ? options.store.memory : default_memory_budget();
  config["threads"] = engine.state().threads;
  config["passthrough"] = !options.no_passthrough;
  config["allow_other"] = options.allow_other;
  return config;
}

/// Batches in memory for programs that ask, see gpu/handoff.
struct HandOff {
  HandOff(const MountOptions& options, const std::shared_ptr<const Generation>& first,
          Engine& engine, Refresher& refresher, Log& log)
      : host(engine),
        gpus(first->views.empty() ? GpuOptions{.gpu = "off"} : options.gpu, engine, host, log),
        server(start(first, gpus.before(host), gpus.unsupported(), engine, refresher, log)) {}

  handoff::HostDelivery host;
  const GpuDeliveries gpus;
  /// Null if it cannot listen: programs then read files only.
  const std::unique_ptr<handoff::HandoffServer> server;

 private:
  static std::unique_ptr<handoff::HandoffServer> start(
      const std::shared_ptr<const Generation>& first, std::vector<handoff::Delivery*> deliveries,
      const std::vector<handoff::UnsupportedGpu>& unsupported, Engine& engine, Refresher& refresher,
      Log& log) {
    try {
      return std::make_unique<handoff::HandoffServer>(
          handoff::HandoffServer::Options{
              .views = first->views,
              .deliveries = std::move(deliveries),
              .unsupported_gpus = unsupported,
              .refresh = [&refresher](
                             bool force,
                             handoff::Refreshed done) { refresher.ask(force, std::move(done)); },
              .reserve = [&engine](std::uint64_t bytes,
                                   const std::string& what) { return engine.reserve(bytes, what); },
              .held = first},
          handoff::Listener::in_runtime_directory(), log);
    } catch (const Error& error) {
      log.warning(std::string("no hand-off, programs read files only: ") + error.what());
      return nullptr;
    }
  }
};

/// Facts about the mount in the files of every generation.
struct MountFacts {
  const MountOptions& options;
  Engine& engine;
  const HandOff& handoff;
  Log& log;
  const std::uint64_t started = Trace::now();
  std::function<FileSystem::Options::Counts()> counts = {};
};

/// Makes the files of a generation. Throws if it cannot be served as files.
void make_files(Generation& generation, const MountFacts& mount) {
  Engine& engine = mount.engine;
  const HandOff& handoff = mount.handoff;
  check_files(generation.views, engine.memory_files(), engine.budget().limit());
  warn_of_memory(generation.views, engine.budget().limit(), mount.log);
  warn_of_samples(generation.views, mount.log);
  FileSystem::Options shown{.store_url = generation.opened.store->url(),
                            .config = config_json(mount.options, generation.opened, engine)};
  shown.snapshot = generation.snapshot();
  shown.reading = generation.reading();
  shown.started = mount.started;
  for (const auto& [name, other] : generation.opened.others)
    shown.other_stores.push_back(other->store);
  shown.counts = mount.counts;
  if (handoff.server != nullptr) {
    shown.handoff_socket = handoff.server->path();
    shown.handoff_statistics = [&handoff] { return handoff_json(*handoff.server, handoff.gpus); };
  }
  generation.files = std::make_unique<FileSystem>(std::move(shown), generation.opened.store,
                                                  generation.opened.hierarchy, generation.dataset,
                                                  generation.views, engine, mount.log);
}

void require_not_mounted(const MountOptions& options, const Supervised& supervisor) {
  if (supervisor.session < 0 && mounted_type(options.directory) == "fuse.batchfs")
    throw Error(ErrorCode::invalid_argument,
                "already mounted; run `batchfs umount` or pass --replace", options.directory);
}

GenerationOptions generation_options(const MountOptions& options, const Supervised& supervisor,
                                     Log& log) {
  GenerationOptions result{
      .store = options.store,
      .views = options.views,
      .input = options.input,
      .check_file =
          [options](const std::string& file) { check_apart(options, "a statistics file", file); },
      .session = supervisor.state};
  result.store.config.warn = [&log](const std::string& line) { log.warning(line); };
  return result;
}

Engine::Options engine_options(const MountOptions& options, const Supervised& supervisor) {
  return {.threads = options.store.threads,
          .memory = engine_memory(options.store),
          .wait = options.time.wait,
          .idle = options.time.idle,
          .served = [&supervisor] { supervisor.served(); }};
}

/// How often the mount shows that it is alive: three times within the supervisor's timeout.
std::optional<std::chrono::microseconds> probe_interval(const MountOptions& options) {
  if (options.hang_timeout <= 0) return std::nullopt;
  return std::chrono::microseconds(static_cast<std::int64_t>(options.hang_timeout * 1e6 / 3 * 2));
}

/// Why a mount is not replaced if its files would become others: its daemon continues to serve.
const char* const kNotReplaced =
    "the store or a view has changed since it was mounted; run `batchfs refresh --force` and try "
    "again, or unmount it and mount again";

/// The parts of a running mount, see serve().
struct Served {
  FuseSession& session;
  Generations& files;
  Engine& engine;
  MountService& service;
  Refresher& refresher;
};

/// Serves until the mount ends. `refreshing`: how to read the store again.
void run(const Served& with, const Refresher::Options& refreshing, const Supervised& supervisor,
         StartReport& report, Log& log) {
  bool was_ready = false, stopped = true;
  const auto ready = [&] {
    with.files.set_passthrough(with.session.passthrough());
    supervisor.ready(with.session.can_be_taken_over());
    was_ready = true;
    with.refresher.begin(refreshing);
    report.ready();
    with.service.ready();
  };
  const auto ending = [&] {
    with.service.stopping();
    supervisor.ending();
    stopped = with.engine.stop(kStopTimeout);  // ends most operations that the refresher waits for
    stopped = with.refresher.stop(kStopTimeout) && stopped;
  };
  try {
    with.session.run(ready, ending);
  } catch (const Error& error) {
    if (!was_ready || !with.session.can_be_taken_over()) throw;
    log.error(error.what());
    supervisor.failed(error.what());
    ::_exit(1);  // see FuseSession::run()
  }
  supervisor.ended();  // or the watchdog's question stays unanswered
  // A read of a store on a network disk may never return: do not wait for it.
  if (!stopped) ::_exit(1);
}

/// A mount, from the store to the session with the kernel. Each object uses only those above it,
/// and is destroyed before them: first the session, so that no more requests come; then the files
/// and the hand-off, which use the engine; then the engine, whose workers read the store; last the
/// store and the log. The refresher's thread uses all of them, and is stopped before.
void serve(const MountOptions& options, const Supervised& supervisor, StartReport& report) {
  require_not_mounted(options, supervisor);
  raise_file_limit();
  Log log(is_stderr_read(options.foreground));
  if (!supervisor.before.empty()) log.warning("the daemon before this one " + supervisor.before);
  const LogLevelSignal log_level(log);

  const GenerationOptions reading = generation_options(options, supervisor, log);
  Engine engine(engine_options(options, supervisor), log);
  Refresher refresher(log);
  auto first =
      first_generation(reading, engine, log, supervisor.predecessor >= 0 ? kNotReplaced : "");
  const HandOff handoff(options, first, engine, refresher, log);
  std::unique_ptr<KnownInodes> inodes;
  std::unique_ptr<MountedGenerations> generations;
  const MountFacts mount{
      .options = options, .engine = engine, .handoff = handoff, .log = log, .counts = [&] {
        const Generations& files = generations->files();
        return FileSystem::Options::Counts{files.size(), files.kernel_names()};
      }};
  make_files(*first, mount);
  const std::string url = first->opened.store->url();
  MountService service(
      url, options.directory, [&supervisor] { supervisor.alive(); }, probe_interval(options));
  supervisor.take_turn();
  first->begin(supervisor.state);
  if (handoff.server != nullptr)
    handoff.server->set_views(first->views, first, first->reading_record());
  SessionState state(supervisor.state);
  inodes = SessionState::inodes(supervisor.state);
  generations = std::make_unique<MountedGenerations>(std::exchange(first, nullptr), *inodes, engine,
                                                     [&refresher] { refresher.sweep_soon(); });
  FuseSession session({.mountpoint = options.directory,
                       .source = url,
                       .passthrough = !options.no_passthrough,
                       .allow_other = options.allow_other,
                       .state = &state,
                       .taken_over = supervisor.session},
                      generations->files(), log);
  if (supervisor.session < 0) supervisor.mounted(session.descriptor());
  const MountedGenerations::Environment growing{
      .options = reading,
      .engine = engine,
      .handoff = handoff.server.get(),
      .log = log,
      .make_files = [&mount](Generation& next) { make_files(next, mount); },
      .names = {
          .forget = [&](Ino parent, const std::string& name) { session.forget_name(parent, name); },
          .expire = [&](Ino parent,
                        const std::string& name) { session.expire_name(parent, name); }}};
  run({session, generations->files(), engine, service, refresher},
      {.refresh = [&](bool force) { return generations->refresh(growing, force); },
       .sweep = [&] { return generations->sweep(growing); },
       .every = std::chrono::duration<double>(options.time.refresh)},
      supervisor, report, log);
}

/// In the process that is to be the supervisor: forks the daemon, and serves there.
void serve_supervised(const MountOptions& options, StartReport& report) {
  const Supervised supervisor =
      supervise({options.directory, !options.no_supervisor, options.replace, options.foreground,
                 std::chrono::duration<double>(options.hang_timeout)},
                report);
  try {
    serve(options, supervisor, report);
  } catch (const std::exception&) {
    supervisor.failed(explain(std::current_exception()).what());
    throw;
  }
}

}  // namespace

CommandAction setup_mount(CLI::App& app) {
  struct Options {
    MountOptions mount;
    std::vector<std::string> lists;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("STORE", options->mount.store.store, "the store")->required()->type_name("");
  app.add_option("DIR", options->mount.directory, "where to mount it: an existing directory")
      ->required()
      ->type_name("");
  add_mount_options(app, options->mount);
  app.add_option("-o", options->lists,
                 "options as mount(8) writes them: -o memory=8G,no-passthrough")
      ->type_name("NAME=VALUE,...")
      ->allow_extra_args(false);
  return [options](Output&) {
    MountOptions& mount = options->mount;
    for (const std::string& list : options->lists) apply_mount_list(list, mount);
    mount.store.store = absolute_store(mount.store.store);
    for (StoreOptions::Named& other : mount.store.others) other.url = absolute_store(other.url);
    check_device();
    mount.directory =
        check_directory(mount.directory, mount.replace || StoredDescriptors::are_there());
    check_apart(mount);
    check_refresh(mount.store, mount.time.refresh);
    // Read once, here: each daemon of this mount is a fork of this process.
    mount.input = read_standard_input(mount.views);
    for (std::string& view : mount.views)
      if (view != "-") view = std::filesystem::absolute(view).string();
    if (!mount.foreground)
      return run_in_background([&](StartReport& report) { serve_supervised(mount, report); },
                               descriptors_in(mount.views));
    StartReport foreground;
    serve_supervised(mount, foreground);
  };
}

}  // namespace batchfs
