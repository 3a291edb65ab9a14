// batchfs doctor: checks this machine's features for batchfs and prints how to add missing ones.

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "tools/cli/command.h"
#include "tools/cli/given_options.h"
#include "tools/doctor/checks.h"
#include "tools/service/mounts.h"

namespace batchfs {

namespace {

struct DoctorOptions {
  StoreOptions store;
  bool json = false;
};

const char* name_of(Check::State state) {
  return state == Check::State::ok ? "ok" : state == Check::State::note ? "note" : "problem";
}

bool is_mount(const std::string& place) {
  try {
    return mounted_type(mount_path(place)) == "fuse.batchfs";
  } catch (const Error&) {
    return false;
  }
}

Checks all_checks(const StoreOptions& options) {
  Checks all;
  const auto add = [&all](const Checks& more) { all.insert(all.end(), more.begin(), more.end()); };
  add(check_kernel());
  add(check_fuse());
  add(check_limits());
  add(check_gpu());
  add(check_handoff());
  if (!options.store.empty())
    add(is_mount(options.store) ? check_mount(options.store) : check_store(options));
  add(check_modes());
  return all;
}

std::string report(const Checks& checks) {
  std::size_t widest = 0;
  for (const Check& check : checks) widest = std::max(widest, check.topic.size());
  std::string text;
  for (const Check& check : checks) {
    text +=
        fmt::format("{:<8} {:<{}}  {}\n", name_of(check.state), check.topic, widest, check.found);
    if (!check.next.empty())
      text += fmt::format("{:<8} {:<{}}  -> {}\n", "", "", widest, check.next);
  }
  return text;
}

Json json_of(const Checks& checks) {
  Json list = Json::array();
  for (const Check& check : checks)
    list.push_back({{"topic", check.topic},
                    {"state", name_of(check.state)},
                    {"found", check.found},
                    {"next", check.next}});
  return list;
}

void show(const DoctorOptions& options, Output& output) {
  const Checks checks = all_checks(options.store);
  const auto problems = std::count_if(checks.begin(), checks.end(), [](const Check& c) {
    return c.state == Check::State::problem;
  });
  output.write(options.json
                   ? json_text({{"problems", problems}, {"checks", json_of(checks)}}) + "\n"
                   : report(checks));
  if (problems == 0) return;
  output.finish();
  throw Error(ErrorCode::invalid_argument,
              problems == 1 ? "there is a problem, see above"
                            : fmt::format("there are {} problems, see above", problems));
}

}  // namespace

CommandAction setup_doctor(CLI::App& app) {
  const auto options = std::make_shared<DoctorOptions>();
  app.add_option("STORE", options->store.store,
                 "a store to reach, or a directory where one is mounted")
      ->type_name("");
  add_engine_options(app, options->store);
  app.add_flag("--json", options->json, "write JSON");
  return [options, &app](Output& output) {
    enter_given_options(app, options->store);
    show(*options, output);
  };
}

}  // namespace batchfs
