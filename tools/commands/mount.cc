// batchfs mount: a store's arrays and batches as files.

#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/base/json_text.h"
#include "engine/base/log.h"
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
  config["memory"] = engine.budget().limit();
  config["threads"] = engine.state().threads;
  config["passthrough"] = !options.no_passthrough;
  config["allow_other"] = options.allow_other;
  return config;
}

/// Batches in memory for programs that ask, see gpu/handoff. A mount without it is a mount still.
std::unique_ptr<handoff::HandoffServer> start_handoff(
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

/// What inode numbers are made of, see SessionState. To be changed with the arithmetic of fs/tree.
std::string identity(const OpenedStore& opened,
                     const std::vector<std::shared_ptr<const View>>& views) {
  constexpr std::string_view kArithmetic = "1";
  std::uint64_t digest = UINT64_C(0xcbf29ce484222325);  // FNV-1a
  const auto add = [&digest](const std::string& text) {
    for (const char c : text)
      digest = (digest ^ static_cast<unsigned char>(c)) * UINT64_C(0x100000001b3);
  };
  for (const auto& view : views) {
    add(json_text(view->resolved()));
    add(json_text(view->schema()));
  }
  return fmt::format("{} {} {:016x}", kArithmetic, opened.hierarchy->snapshot_id, digest);
}

/// Seconds that reads of the store may take to end with the mount.
constexpr double kStopTimeout = 10;

/// Serves until the mount ends. `ready` is called when it can be used.
void serve(const MountOptions& options, const Supervised& supervised,
           const std::function<void()>& ready) {
  if (supervised.session < 0 && mounted_type(options.directory) == "fuse.batchfs")
    throw Error(ErrorCode::invalid_argument,
                "a store is mounted there already; end that with batchfs umount, or take --replace",
                options.directory);
  raise_file_limit();
  Log log(is_stderr_read(options.foreground));
  if (!supervised.before.empty()) log.warning("the daemon before this one " + supervised.before);
  const LogLevelSignal log_level(log);
  StoreOptions store = options.store;
  store.config.warn = [&log](const std::string& line) { log.warning(line); };
  store.config.versions = SessionState::versions(supervised.state);
  const OpenedStore opened = open_zarr(store);
  const auto dataset = open_dataset(opened, !options.views.empty(), log);
  auto views = load_views(dataset, options.views, [&](const std::string& file) {
    check_apart(options, "a statistics file", file);
  });
  Engine engine({.threads = options.store.threads,
                 .memory = options.store.memory,
                 .wait = options.time.wait,
                 .idle = options.time.idle,
                 .served = [&supervised] { supervised.served(); },
                 .store = opened.store,
                 .held = opened.held_memory()},
                log);
  for (auto& view : views) view = find_samples(view, opened, options.store, engine, log);
  check_files(views, engine.memory_files(), engine.budget().limit());
  warn_of_memory(views, engine.budget().limit(), log);
  handoff::HostDelivery host(engine);
  const GpuDeliveries gpus(views.empty() ? GpuOptions{.gpu = "off"} : options.gpu, engine, host,
                           log);
  const auto handoff = start_handoff(views, gpus.before(host), log);
  FileSystem::Options shown{.store_url = opened.store->url(),
                            .config = config_json(options, *opened.store, engine)};
  if (handoff != nullptr) {
    shown.handoff_socket = handoff->path();
    shown.handoff_statistics = [&server = *handoff, &gpus] { return handoff_json(server, gpus); };
  }
  FileSystem files(std::move(shown), opened.store, opened.hierarchy, dataset, views, engine, log);
  std::optional<std::chrono::microseconds>
      probe;  // three times in the time that the supervisor waits
  if (options.hang_timeout > 0)
    probe =
        std::chrono::microseconds(static_cast<std::int64_t>(options.hang_timeout * 1e6 / 3 * 2));
  MountService service(
      opened.store->url(), options.directory, [&supervised] { supervised.alive(); }, probe);
  const std::string numbers = identity(opened, views);
  if (supervised.session >= 0) SessionState(supervised.state).identify(numbers);
  supervised.take_turn();
  SessionState state(supervised.state);
  state.identify(numbers);
  bool ended = true;
  FuseSession session({.mountpoint = options.directory,
                       .source = opened.store->url(),
                       .passthrough = !options.no_passthrough,
                       .allow_other = options.allow_other,
                       .state = &state,
                       .taken_over = supervised.session},
                      files, log);
  if (supervised.session < 0) supervised.mounted(session.descriptor());
  bool was_ready = false;
  try {
    session.run(
        [&] {
          files.set_passthrough(session.passthrough());
          supervised.ready(session.can_be_taken_over());
          was_ready = true;
          ready();
          service.ready();
        },
        [&] {
          service.stopping();
          supervised.ending();
          ended = engine.stop(kStopTimeout);
        });
  } catch (const Error& error) {
    if (!was_ready || !session.can_be_taken_over()) throw;
    log.error(error.what());
    supervised.failed(error.what());
    ::_exit(1);  // see FuseSession::run()
  }
  supervised.ended();  // or the watchdog's question has no answer
  // A read of a store on a network disk may never return: nothing here can wait for it.
  if (!ended) ::_exit(1);
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
    for (std::string& view : mount.views) view = std::filesystem::absolute(view).string();
    Supervised supervised;
    const auto run = [&](const std::function<void()>& ready) {
      try {
        serve(mount, supervised, ready);
      } catch (const std::exception&) {
        supervised.failed(explain(std::current_exception()).what());
        throw;
      }
    };
    const auto split = [&](const std::function<void()>& leave) {
      supervised = supervise({mount.directory, !mount.no_supervisor, mount.replace,
                              mount.foreground, std::chrono::duration<double>(mount.hang_timeout)},
                             leave);
      return supervised.first;
    };
    if (!mount.foreground) return run_in_background(run, descriptors_in(mount.views), split);
    split([] {});
    run([] {});
  };
}

}  // namespace batchfs
