#include "tools/cli/given_options.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace batchfs {

namespace {

/// In the order in which they are proposed.
constexpr std::array<std::string_view, 23> kOfStores = {
    "array",          "level",        "branch",      "tag",        "snapshot",  "as-of",
    "virtual",        "anon",         "profile",     "region",     "endpoint",  "requester-pays",
    "missing",        "timeout",      "retries",     "via",        "cache-dir", "cache-size",
    "virtual-checks", "follow-links", "cache-trust", "via-verify", "memory"};
constexpr std::array<std::string_view, 6> kOfFirst = {"array", "level",    "branch",
                                                      "tag",   "snapshot", "as-of"};

/// Without users, passwords and query of its URLs ("PREFIX=URL" has two), which may be secrets.
std::string without_secrets(const std::string& value) {
  std::string shown = value;
  if (const std::size_t query = value.find('?');
      query != std::string::npos && value.find("://") < query)
    shown = value.substr(0, query) + "?...";
  for (std::size_t scheme = 0; (scheme = shown.find("://", scheme)) != std::string::npos;) {
    const std::size_t begin = scheme += 3, end = std::min(shown.find('/', begin), shown.size());
    const std::size_t at = shown.substr(0, end).rfind('@');
    if (at != std::string::npos && at >= begin) shown.replace(begin, at - begin, "...");
  }
  return shown;
}

}  // namespace

void enter_given_options(const CLI::App& app, StoreOptions& options) {
  for (const std::string_view name : kOfStores) {
    const CLI::Option* const option = app.get_option_no_throw("--" + std::string(name));
    if (option == nullptr || option->count() == 0) continue;
    std::vector<std::string>& values = options.given[std::string(name)];
    values.clear();
    if (option->get_expected_max() > 0) values = option->results();
  }
}

StoreOptions::Given given_for_others(const StoreOptions::Given& given) {
  StoreOptions::Given others = given;
  for (const std::string_view name : kOfFirst) others.erase(std::string(name));
  return others;
}

std::string words_of(const StoreOptions::Given& given) {
  std::string words;
  for (const std::string_view name : kOfStores) {
    const auto found = given.find(std::string(name));
    if (found == given.end()) continue;
    const std::string option = "--" + found->first + " ";
    if (found->second.empty()) words += option;
    for (const std::string& value : found->second)
      words += option + shell_word(without_secrets(value)) + " ";
  }
  return words;
}

std::string shell_word(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_./-+=:@,").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !text.empty()) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace batchfs
