#include "tools/cli/repository_options.h"

#include <chrono>
#include <string>

namespace batchfs {

namespace {

constexpr std::int64_t kMicrosecondsPerSecond = 1'000'000;

/// A text that is taken piece by piece.
class Pieces {
 public:
  explicit Pieces(std::string_view rest) : rest_(rest) {}

  /// A number with exactly `count` digits.
  std::optional<int> digits(std::size_t count) {
    if (rest_.size() < count) return std::nullopt;
    int value = 0;
    for (const char c : rest_.substr(0, count)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

/// "12:30", as seconds.
std::optional<std::int64_t> hours_and_minutes(Pieces& text) {
  const auto hours = text.digits(2);
  if (!hours || *hours > 23 || !text.take(':')) return std::nullopt;
  const auto minutes = text.digits(2);
  if (!minutes || *minutes > 59) return std::nullopt;
  return *hours * 3600 + *minutes * 60;
}

/// ".5", as microseconds.
std::optional<std::int64_t> fraction(Pieces& text) {
  if (!text.take('.')) return 0;
  std::int64_t value = 0, unit = kMicrosecondsPerSecond / 10;
  bool any = false;
  while (const auto digit = text.digits(1)) {
    value += *digit * unit;
    unit /= 10;
    any = true;
  }
  return any ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> parse_time_of_day(std::string_view whole) {
  Pieces text(whole);
  const auto year = text.digits(4);
  if (!year || !text.take('-')) return std::nullopt;
  const auto month = text.digits(2);
  if (!month || !text.take('-')) return std::nullopt;
  const auto day = text.digits(2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  std::int64_t seconds =
      std::int64_t{std::chrono::sys_days(date).time_since_epoch().count()} * 24 * 3600;
  std::int64_t micro = 0;
  if (!text.empty()) {
    if (!text.take('T') && !text.take(' ')) return std::nullopt;
    const auto time = hours_and_minutes(text);
    if (!time) return std::nullopt;
    seconds += *time;
    if (text.take(':')) {
      const auto second = text.digits(2);
      const auto part = second && *second < 60 ? fraction(text) : std::nullopt;
      if (!part) return std::nullopt;
      seconds += *second;
      micro = *part;
    }
    const bool east = text.take('+'), west = !east && text.take('-');
    if (east || west) {
      const auto offset = hours_and_minutes(text);
      if (!offset) return std::nullopt;
      seconds -= east ? *offset : -*offset;
    } else {
      text.take('Z');
    }
  }
  if (!text.empty()) return std::nullopt;
  return seconds * kMicrosecondsPerSecond + micro;
}

void add_repository_options(CLI::App& app, IcechunkOptions& options, VirtualOptions& outside) {
  const std::string group = "Icechunk repositories";
  app.add_option("--branch", options.branch,
                 "read the newest snapshot of this branch (default: main)")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--tag", options.tag, "read the snapshot of this tag")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--snapshot", options.snapshot, "read the snapshot of this id")
      ->type_name("ID")
      ->group(group);
  const auto set_time = [&options](const std::string& text) {
    options.as_of = parse_time_of_day(text);
    if (!options.as_of)
      throw CLI::ValidationError(
          "--as-of", "'" + text + "' is not a time such as 2024-05-01 or 2024-05-01T12:30Z");
  };
  app.add_option_function<std::string>("--as-of,--as_of", set_time,
                                       "read what the branch held at this time (UTC)")
      ->type_name("TIME")
      ->group(group);
  const std::string others = "Chunks in other files";
  app.add_option("--virtual", outside.places,
                 "chunks of a repository or reference set may lie outside of it below this URL; "
                 "PREFIX=URL reads URL in its place")
      ->type_name("PREFIX[=URL]")
      ->take_all()
      ->allow_extra_args(false)
      ->group(others);
  app.add_option_function<std::string>(
         "--virtual-checks,--virtual_checks",
         [&outside](const std::string& word) { outside.checks = word == "on"; },
         "compare ETags and times of files outside of an Icechunk repository (default: on)")
      ->check(CLI::IsMember({"on", "off"}).description(""))
      ->type_name("on|off")
      ->group(others);
}

}  // namespace batchfs
