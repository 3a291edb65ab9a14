#include "tools/cli/stores/store_settings.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/strings.h"
#include "tools/cli/given_options.h"
#include "tools/cli/repository_options.h"

namespace batchfs {

namespace {

const std::vector<std::string>& possible_options() {
  static const std::vector<std::string> names{
      "anon",       "endpoint",    "region",  "profile",      "requester-pays",
      "missing",    "timeout",     "retries", "follow-links", "cache-dir",
      "cache-size", "cache-trust", "via",     "via-verify",   "branch",
      "tag",        "snapshot",    "as-of",   "virtual",      "virtual-checks"};
  return names;
}

void parse(const std::string& option, StoreOptions& own) {
  CLI::App app;
  app.set_help_flag();
  add_engine_options(app, own);
  try {
    app.parse(std::vector<std::string>{"--" + option});
    enter_given_options(app, own);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::invalid_argument, error.what());
  }
}

bool is_in_series(const StoreOptions& options, const std::string& series, const std::string& name) {
  const auto found = options.series.find(series);
  return found != options.series.end() &&
         std::find(found->second.begin(), found->second.end(), name) != found->second.end();
}

}  // namespace

void add_store_setting(StoreOptions& options, const std::string& text) {
  const std::string names = text.substr(0, text.find('='));
  const std::size_t dot = names.rfind('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == names.size())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("'{}' is not NAME.OPTION=VALUE, as rain.anon or rain.region=eu-west-1", text));
  const std::string option = names.substr(dot + 1);
  const std::vector<std::string>& possible = possible_options();
  if (std::find(possible.begin(), possible.end(), option) == possible.end())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}': '{}' is not an option of a single store{}", text, option,
                            nearest_or_all(option, possible)));
  StoreOptions unused;
  parse(text.substr(dot + 1), unused);
  options.settings.emplace_back(names.substr(0, dot), text.substr(dot + 1));
}

void check_store_settings(const StoreOptions& options) {
  for (const auto& [name, option] : options.settings) {
    std::vector<std::string> names;
    for (const StoreOptions::Named& other : options.others) names.push_back(other.name);
    for (const auto& [series, members] : options.series) names.push_back(series);
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("no store '{}' is given{}; add --store {}=URL to the command", name,
                              did_you_mean(name, names), name),
                  fmt::format("--store-option {}.{}", name, option.substr(0, option.find('='))));
  }
}

void apply_store_settings(const StoreOptions& options, const std::string& name, StoreOptions& own) {
  for (const bool of_series : {true, false})  // the store's own last: they win
    for (const auto& [of, option] : options.settings)
      if (of_series ? is_in_series(options, of, name) : of == name) parse(option, own);
}

}  // namespace batchfs
