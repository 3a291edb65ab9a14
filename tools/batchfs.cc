// batchfs: Zarr stores as ready-made training batches. The command line; each command is a file
// beside this one.

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include <malloc.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/system_error.h"
#include "tools/cli/command.h"
#include "tools/cli/failure_line.h"
#include "tools/service/last_words.h"
#include "tools/service/mount_helper.h"

namespace batchfs {

namespace {

constexpr int kDone = 0, kFailed = 1, kWrongUsage = 2;
constexpr int kWrongUsageOfMount = 1, kMountFailure = 32;  // mount(8)'s

constexpr Command kCommands[] = {
    {"inspect", "Look at a store", "show what is in a store: groups, arrays, chunks, codecs, sizes",
     "batchfs inspect era5.zarr", setup_inspect},
    {"show", "Look at a store", "write an HTML page with pictures of what is in a store",
     "batchfs show era5.zarr -o era5.html", setup_show},
    {"cat", "Look at a store", "write the values of an array to standard output",
     "batchfs cat era5.zarr t2m --select time=2000-01 --select latitude=35:60 > t2m.npy",
     setup_cat},
    {"check", "Look at a store", "read and verify every chunk, shard index and checksum of a store",
     "batchfs check era5.zarr", setup_check},
    {"view", "Prepare batches", "write a starter view for a store, to edit",
     "batchfs view era5.zarr > view.json", setup_view},
    {"plan", "Prepare batches", "show the batches of a view and what they cost to read",
     "batchfs plan era5.zarr --view view.json", setup_plan},
    {"statistics", "Prepare batches",
     "compute what a view's \"normalize\" needs: mean, std, min, max",
     "batchfs statistics era5.zarr --view view.json -o stats.json", setup_statistics},
    {"batch", "Prepare batches", "write one batch to standard output, without a mount",
     "batchfs batch era5.zarr --view view.json --batch 7 > batch-7.npy", setup_batch},
    {"warm", "Prepare batches", "fetch what a view reads into local or shared caches",
     "batchfs warm s3://bucket/era5.zarr --view view.json --cache-dir /scratch/batchfs",
     setup_warm},
    {"rechunk", "Make copies", "copy a store to a Zarr store with other chunks",
     "batchfs rechunk era5.zarr --chunks time=1,latitude=721,longitude=1440 -o steps.zarr",
     setup_rechunk},
    {"export", "Make copies", "write the batches of an epoch to files that other loaders read",
     "batchfs export era5.zarr --view view.json --to webdataset -o shards", setup_export},
    {"mount", "Use batches", "mount a store: its batches become files",
     "batchfs mount era5.zarr /mnt/era5 --view view.json", setup_mount},
    {"serve", "Use batches", "serve batches without a mount, to the Python package and C programs",
     "batchfs serve era5.zarr --view view.json --socket /tmp/era5.sock", setup_serve},
    {"umount", "Use batches", "end a mount", "batchfs umount /mnt/era5", setup_umount},
    {"refresh", "Use batches", "have a mount or a server read its store again, which has grown",
     "batchfs refresh /mnt/era5", setup_refresh},
    {"status", "Use batches", "show the counters of a mount", "batchfs status /mnt/era5",
     setup_status},
    {"top", "Use batches", "show the activity of a mount, live: readers, waits, store, memory",
     "batchfs top /mnt/era5", setup_top},
    {"report", "Use batches", "write an HTML page about what readers of a mount waited for",
     "batchfs report /mnt/era5 -o report.html", setup_report},
    {"log", "Use batches", "show the log of a mount, or set its level",
     "batchfs log /mnt/era5 --level debug", setup_log},
    {"doctor", "Use batches", "check what this machine supports, and what is missing",
     "batchfs doctor era5.zarr", setup_doctor},
    {"completion", "", "write the completion script for bash, zsh or fish",
     "batchfs completion bash > /etc/bash_completion.d/batchfs", setup_completion},
};

int complain(const std::string& what, const std::string& code, const std::string& why,
             int exit_code) {
  const std::string line = failure_line(what, code, why);
  // Ignores a failed write: stderr itself is gone.
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
  return exit_code;
}

int complain_about_usage(const std::string& what, const std::string& why, const std::string& help) {
  return complain(what, kUsageCode, why + " (see " + help + ")", kWrongUsage);
}

/// The problem with the first argument; empty when it is a command or an option of batchfs itself.
std::string command_problem(int argc, char** argv) {
  if (argc < 2) return "it needs a command";
  std::vector<std::string> known = {"--help", "-h", "--version"};
  for (const Command& command : kCommands) known.emplace_back(command.name);
  const std::string first = argv[1];
  if (std::find(known.begin(), known.end(), first) != known.end()) return {};
  return (first.starts_with('-') ? "there is no option '" : "there is no command '") + first + "'" +
         did_you_mean(first, known);
}

/// Every option of a command, as typed: "--json".
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// The problem with the command line, in our words where CLI11's do not help.
std::string usage_problem(const CLI::ParseError& error, const CLI::App& app) {
  // An option that is misspelt is often the one that is required.
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
      dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const std::vector<std::string> extras = app.remaining(true);
    if (!extras.empty() && extras[0].size() > 1 && extras[0][0] == '-') {
      const std::string name = extras[0].substr(0, extras[0].find('='));
      return "there is no option '" + name + "'" + did_you_mean(name, option_names(app));
    }
    if (!extras.empty() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
      return "there is one argument too many: '" + extras[0] + "'";
  }
  return error.what();
}

void describe(CLI::App& app) {
  app.name("batchfs");
  app.description(
      "Zarr stores as ready-made training batches: any program that opens a file can train.");
  app.set_version_flag("--version", "batchfs " BATCHFS_VERSION, "print the version");
  app.set_help_flag("-h,--help", "print this help");
  app.footer(
      "Start with:\n"
      "  batchfs inspect STORE                         its contents\n"
      "  batchfs view STORE > view.json                the definition of the batches, to edit\n"
      "  batchfs mount STORE DIR --view view.json      and read DIR/views/...\n\n"
      "batchfs COMMAND --help says more; see also batchfs(1), batchfs-view(5), batchfs-layout(7).");
}

constexpr std::string_view kOutOfMemory =
    "out of memory; select less, use a smaller --memory, or raise the limit (ulimit -v)";

int run(const Command& command, const CommandAction& chosen) {
  set_last_words(STDERR_FILENO, "batchfs: " + std::string(command.name) +
                                    " failed: " + std::string(kOutOfMemory) + "\n");
  try {
    Output output(STDOUT_FILENO);
    chosen(output);
    output.finish();
    return kDone;
  } catch (const ReaderWentAway&) {
    return kFailed;
  } catch (const UsageError& error) {
    return complain_about_usage(command.name, error.why,
                                std::string("batchfs ") + command.name + " --help");
  } catch (const Error& error) {
    return complain(command.name, name_of(error.code()), error.what(), kFailed);
  } catch (const std::bad_alloc&) {
    throw;  // to main()
  } catch (const std::exception&) {
    const Error error = explain(std::current_exception());
    return complain(
        command.name, name_of(error.code()),
        (error.code() == ErrorCode::internal ? "internal error: " : "") + std::string(error.what()),
        kFailed);
  }
}

/// Process listings show the arguments. Overwrites, once they have been read, parts of a URL that
/// may be secret: a password, or a signature after '?'.
void hide_secrets(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const std::size_t scheme = text.find("://");
    if (scheme == std::string::npos) continue;
    const std::size_t host = scheme + 3, end = std::min(text.find('/', host), text.size());
    const std::size_t at = text.rfind('@', end), colon = text.find(':', host),
                      query = text.find('?', host);
    if (at != std::string::npos && colon < at) std::fill(argv[i] + colon + 1, argv[i] + at, 'x');
    if (query != std::string::npos) std::fill(argv[i] + query + 1, argv[i] + text.size(), 'x');
  }
}

int main_of(int argc, char** argv) {
  if (const std::string problem = command_problem(argc, argv); !problem.empty()) {
    return complain_about_usage("batchfs", problem, "batchfs --help");
  }

  CLI::App app;
  describe(app);
  const Command* command = nullptr;
  CommandAction chosen;
  for (const Command& candidate : kCommands) {
    CLI::App* sub = app.add_subcommand(candidate.name, candidate.summary)->group(candidate.group);
    sub->footer(std::string("Example:\n  ") + candidate.example);
    const CommandAction candidate_run = candidate.setup(*sub);
    sub->parse_complete_callback([&, candidate_run, entry = &candidate] {
      command = entry;
      chosen = candidate_run;
    });
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help and --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    // The command is known now: the first argument names it.
    const CLI::App* chosen_app = app.get_subcommands().empty() ? &app : app.get_subcommands()[0];
    const std::string name = chosen_app == &app ? "batchfs" : "batchfs " + chosen_app->get_name();
    return complain_about_usage(chosen_app->get_name(), usage_problem(error, *chosen_app),
                                name + " --help");
  }
  hide_secrets(argc, argv);
  return run(*command, chosen);
}

/// Runs as mount.batchfs, with the exit codes of mount(8).
int main_of_mount_helper(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  hide_secrets(argc, argv);
  try {
    return run_mount_helper(arguments, [argv](std::vector<std::string> command) {
      std::vector<char*> pointers = {argv[0]};
      for (std::string& argument : command) pointers.push_back(argument.data());
      return main_of(static_cast<int>(pointers.size()), pointers.data());
    });
  } catch (const UsageError& error) {
    complain_about_usage("mount", error.why, "mount.batchfs --help");
    return kWrongUsageOfMount;
  } catch (const Error& error) {
    return complain("mount", name_of(error.code()), error.what(), kMountFailure);
  }
}

}  // namespace

}  // namespace batchfs

namespace {

/// Returns freed memory to the system instead of keeping it in the allocator's caches, which
/// --memory does not count. A few arenas serve all threads: large buffers do not come from malloc
/// (buffer.h). Blocks of up to kMapped stay in the arenas: c-blosc allocates scratch memory of
/// about 1 MB for each chunk, and a mapping with its page faults each time would cost a tenth of
/// the decoding.
void bound_heap() {
  constexpr int kMaxArenas = 4, kMapped = 4 << 20, kKeptFree = 4 << 20;
  ::mallopt(M_ARENA_MAX, kMaxArenas);
  ::mallopt(M_MMAP_THRESHOLD, kMapped);
  ::mallopt(M_TRIM_THRESHOLD, kKeptFree);
}

}  // namespace

int main(int argc, char** argv) {
  bound_heap();
  const bool is_helper = batchfs::is_mount_helper(argv[0]);
  batchfs::end_with_last_words(is_helper ? batchfs::kMountFailure : batchfs::kFailed);
  batchfs::set_last_words(STDERR_FILENO,
                          "batchfs: starting failed: out of memory; close other programs, or raise "
                          "the limit (ulimit -v)\n");
  try {
    return is_helper ? batchfs::main_of_mount_helper(argc, argv) : batchfs::main_of(argc, argv);
  } catch (const std::bad_alloc&) {
    throw;  // to the last words, since nothing catches it. Caught so that the stack is unwound
            // first, which ends threads
  }
}
