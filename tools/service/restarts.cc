#include "tools/service/restarts.h"

#include <fmt/format.h>

namespace batchfs {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxEnds = 5;
constexpr std::chrono::seconds kEndsWithin = 1min;
constexpr std::size_t kMaxKills = 20;
constexpr std::chrono::minutes kKillsWithin = 10min;
constexpr std::size_t kMaxHangs = 3;
constexpr std::chrono::hours kHangsWithin = 1h;
constexpr std::chrono::seconds kMaxPause = 1min;
constexpr std::chrono::milliseconds kFirstDelay = 100ms;  // doubled each time

void note_end(std::deque<Restarts::Time>& times, Restarts::Time now, std::chrono::seconds within,
              bool add) {
  if (add) times.push_back(now);
  while (!times.empty() && now - times.front() > within) times.pop_front();
}

}  // namespace

std::optional<std::string> Restarts::ended(const End& end, Time now) {
  if (!down_since_) down_since_ = now;
  if (end.served) {
    kills_.clear();
    hangs_.clear();
  }
  note_end(ends_, now, kEndsWithin, !end.killed && !end.hung);
  note_end(kills_, now, kKillsWithin, end.killed && !end.hung && !end.served);
  note_end(hangs_, now, kHangsWithin, end.hung && !end.served);
  if (ends_.size() >= kMaxEnds)
    return fmt::format(
        "the daemon ended {} times within a minute and is not started again; the last one {}",
        ends_.size(), end.how);
  if (kills_.size() >= kMaxKills)
    return fmt::format(
        "the daemon was killed {} times within {} minutes before any reader received data, and is "
        "not "
        "started again; if the kernel kills it for lack of memory, mount with a smaller --memory",
        kills_.size(), kKillsWithin.count());
  if (hangs_.size() >= kMaxHangs)
    return fmt::format(
        "the daemon hung {} times within an hour before any reader received data, and is not "
        "started "
        "again; the last one {}",
        hangs_.size(), end.how);
  if (!end.ready && now - *down_since_ >= kMaxPause)
    return fmt::format("no daemon became ready for {} seconds; the last one {}", kMaxPause.count(),
                       end.how);
  delay_ = end.ready || end.killed || end.hung ? 0ms : kFirstDelay * (1 << (ends_.size() - 1));
  return std::nullopt;
}

}  // namespace batchfs
