// batchfs mount: a store's arrays and batches as files.

#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include "engine/base/json_text.h"
#include "engine/base/log.h"
#include "engine/base/strings.h"
#include "engine/base/system_error.h"
#include "engine/pipeline/engine.h"
#include "fs/file_system.h"
#include "fs/fuse/fuse_session.h"
#include "fs/session_state.h"
#include "gpu/handoff/host_delivery.h"
#include "gpu/handoff/server.h"
#include "tools/cli/command.h"
#include "tools/cli/samples.h"
#include "tools/service/background.h"
#include "tools/service/inherited_descriptors.h"
#include "tools/service/log_level_signal.h"
#include "tools/service/mount_options.h"
#include "tools/service/mount_service.h"
#include "tools/service/mounts.h"
#include "tools/service/serving.h"
#include "tools/service/stored_descriptors.h"
#include "tools/service/supervisor.h"

namespace batchfs {

namespace {

std::string check_directory(const std::string& directory, bool takes_over) {
  const std::string place = "the mount point '" + directory + "'";
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::absolute(directory).parent_path(), error)) {
    // Perhaps nobody answers there until this process does: it is not looked into.
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

/// What .batchfs/config.json shows: nothing secret.
Json config_json(const MountOptions& options, const Store& store, const Engine& engine) {
  Json config = Json::object();
  config["store"] = store.url();
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
  HandOff(const MountOptions& options, const std::vector<std::shared_ptr<const View>>& views,
          Engine& engine, Log& log)
      : host(engine),
        gpus(views.empty() ? GpuOptions{.gpu = "off"} : options.gpu, engine, host, log),
        server(start(views, gpus.before(host), log)) {}

  handoff::HostDelivery host;
  const GpuDeliveries gpus;
  /// Null without views, and where it cannot listen: programs then read files only.
  const std::unique_ptr<const handoff::HandoffServer> server;

 private:
  static std::unique_ptr<handoff::HandoffServer> start(
      const std::vector<std::shared_ptr<const View>>& views,
      std::vector<handoff::Delivery*> deliveries, Log& log) {
    if (views.empty()) return nullptr;
    try {
      return std::make_unique<handoff::HandoffServer>(
          handoff::HandoffServer::Options{.views = views, .deliveries = std::move(deliveries)},
          handoff::Listener::in_runtime_directory(), log);
    } catch (const Error& error) {
      log.warning(std::string("no hand-off, programs read files only: ") + error.what());
      return nullptr;
    }
  }
};

FileSystem::Options file_system_options(const MountOptions& options, const Store& store,
                                        const Engine& engine, const HandOff& handoff) {
  FileSystem::Options shown{.store_url = store.url(),
                            .config = config_json(options, store, engine)};
  if (handoff.server != nullptr) {
    shown.handoff_socket = handoff.server->path();
    shown.handoff_statistics = [&handoff] { return handoff_json(*handoff.server, handoff.gpus); };
  }
  return shown;
}

std::string digest_of(const std::string& text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

/// What inode numbers are made of, see SessionState. To be changed with the arithmetic of fs/tree.
std::string identity(const OpenedStore& opened,
                     const std::vector<std::shared_ptr<const View>>& views) {
  constexpr std::string_view kArithmetic = "2";
  std::uint64_t digest = 0;
  const auto add = [&digest](const std::string& text) {
    digest = XXH3_64bits_withSeed(text.data(), text.size(), digest);
  };
  for (const auto& view : views) {
    add(json_text(view->resolved()));
    add(json_text(view->schema()));
  }
  const auto& revision = opened.hierarchy->revision;
  return fmt::format("{} {} {:016x}{}", kArithmetic, opened.hierarchy->snapshot_id, digest,
                     revision ? " " + digest_of(revision->chosen_by) : "");
}

/// The snapshot of an Icechunk repository that a session began with, if this daemon, which goes on
/// with the session, is to show the same branch; else empty. The branch may have moved on.
std::string pinned_snapshot(const std::string& numbers, const IcechunkOptions& options) {
  const std::vector<std::string> words = split(numbers, ' ');
  const std::string branch = "branch " + (options.branch.empty() ? "main" : options.branch);
  const bool follows_branch =
      options.tag.empty() && options.snapshot.empty() && numbers.ends_with(" " + digest_of(branch));
  return follows_branch && words.size() > 3 ? words[1] : std::string();
}

/// Seconds that reads of the store may take to end with the mount.
constexpr double kStopTimeout = 10;

void require_not_mounted(const MountOptions& options, const Supervised& supervisor) {
  if (supervisor.session < 0 && mounted_type(options.directory) == "fuse.batchfs")
    throw Error(ErrorCode::invalid_argument,
                "already mounted; run `batchfs umount` or pass --replace", options.directory);
}

OpenedStore open_store(const MountOptions& options, const Supervised& supervisor, Log& log) {
  StoreOptions store = options.store;
  store.config.warn = [&log](const std::string& line) { log.warning(line); };
  store.config.versions = SessionState::versions(supervisor.state);
  store.config.icechunk.pinned =
      pinned_snapshot(SessionState(supervisor.state).identity(), store.config.icechunk);
  return open_zarr(store);
}

std::vector<std::shared_ptr<const View>> read_views(const MountOptions& options,
                                                    GroupDatasets& datasets) {
  return load_views(
      datasets, options.views,
      [&](const std::string& file) { check_apart(options, "a statistics file", file); },
      options.input);
}

Engine::Options engine_options(const MountOptions& options, const Supervised& supervisor,
                               const OpenedStore& opened) {
  return {.threads = options.store.threads,
          .memory = opened.budget,
          .wait = options.time.wait,
          .idle = options.time.idle,
          .served = [&supervisor] { supervisor.served(); },
          .store = opened.store,
          .held = opened.held_memory()};
}

/// Finds the samples of the views, and checks that their batches fit in memory.
void resolve_views(const MountOptions& options, const OpenedStore& opened, Engine& engine, Log& log,
                   std::vector<std::shared_ptr<const View>>& views) {
  for (auto& view : views) view = find_samples(view, opened, options.store, engine, log);
  check_files(views, engine.memory_files(), engine.budget().limit());
  warn_of_memory(views, engine.budget().limit(), log);
  warn_of_samples(views, log);
}

/// How often the mount shows that it is alive: three times in the time that the supervisor waits.
std::optional<std::chrono::microseconds> probe_interval(const MountOptions& options) {
  if (options.hang_timeout <= 0) return std::nullopt;
  return std::chrono::microseconds(static_cast<std::int64_t>(options.hang_timeout * 1e6 / 3 * 2));
}

/// Waits until no other daemon serves the session. Throws stale, before that daemon ends, when its
/// inode numbers would mean other files here.
void take_turn(const Supervised& supervisor, const std::string& numbers) {
  // A SessionState of its own: the other daemon changes the state until it ends.
  if (supervisor.session >= 0) SessionState(supervisor.state).identify(numbers);
  supervisor.take_turn();
}

/// Serves until the mount ends.
void run(FuseSession& session, FileSystem& files, Engine& engine, MountService& service,
         const Supervised& supervisor, StartReport& report, Log& log) {
  bool was_ready = false, stopped = true;
  const auto ready = [&] {
    files.set_passthrough(session.passthrough());
    supervisor.ready(session.can_be_taken_over());
    was_ready = true;
    report.ready();
    service.ready();
  };
  const auto ending = [&] {
    service.stopping();
    supervisor.ending();
    stopped = engine.stop(kStopTimeout);
  };
  try {
    session.run(ready, ending);
  } catch (const Error& error) {
    if (!was_ready || !session.can_be_taken_over()) throw;
    log.error(error.what());
    supervisor.failed(error.what());
    ::_exit(1);  // see FuseSession::run()
  }
  supervisor.ended();  // or the watchdog's question has no answer
  // A read of a store on a network disk may never return: nothing here can wait for it.
  if (!stopped) ::_exit(1);
}

/// A mount, from the store to the session with the kernel. Each object uses only those above it,
/// and is destroyed before them: first the session, so that no request comes any more; then the
/// files and the hand-off, which use the engine; then the engine, whose workers read the store;
/// last the store and the log.
void serve(const MountOptions& options, const Supervised& supervisor, StartReport& report) {
  require_not_mounted(options, supervisor);
  raise_file_limit();
  Log log(is_stderr_read(options.foreground));
  if (!supervisor.before.empty()) log.warning("the daemon before this one " + supervisor.before);
  const LogLevelSignal log_level(log);

  OpenedStore opened = open_store(options, supervisor, log);
  GroupDatasets datasets(opened);
  auto views = read_views(options, datasets);
  const auto dataset = described_dataset(opened, datasets, log);
  Engine engine(engine_options(options, supervisor, opened), log);
  resolve_views(options, opened, engine, log, views);
  const HandOff handoff(options, views, engine, log);
  FileSystem files(file_system_options(options, *opened.store, engine, handoff), opened.store,
                   opened.hierarchy, dataset, views, engine, log);
  MountService service(
      opened.store->url(), options.directory, [&supervisor] { supervisor.alive(); },
      probe_interval(options));
  const std::string numbers = identity(opened, views);
  take_turn(supervisor, numbers);
  SessionState state(supervisor.state);
  state.identify(numbers);
  FuseSession session({.mountpoint = options.directory,
                       .source = opened.store->url(),
                       .passthrough = !options.no_passthrough,
                       .allow_other = options.allow_other,
                       .state = &state,
                       .taken_over = supervisor.session},
                      files, log);
  if (supervisor.session < 0) supervisor.mounted(session.descriptor());
  run(session, files, engine, service, supervisor, report, log);
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
    check_device();
    mount.directory =
        check_directory(mount.directory, mount.replace || StoredDescriptors::are_there());
    check_apart(mount);
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
