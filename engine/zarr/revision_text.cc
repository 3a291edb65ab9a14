#include "engine/zarr/revision_text.h"

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "engine/base/printable.h"

namespace batchfs {

std::string utc_text(std::uint64_t microseconds) {
  constexpr std::uint64_t kSecond = 1'000'000, kLast = 253'402'300'799;  // year 9999
  const std::uint64_t seconds = microseconds / kSecond;
  if (seconds > kLast) return fmt::format("{} us", microseconds);
  std::string text =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::gmtime(static_cast<std::time_t>(seconds)));
  if (microseconds % kSecond != 0) text += fmt::format(".{:06}", microseconds % kSecond);
  return text + "Z";
}

std::string revision_text(const Store::Revision& revision) {
  std::string text = "snapshot " + revision.id;
  if (!revision.chosen_by.empty()) text += " of " + printable(revision.chosen_by);
  return text + ", " + utc_text(revision.time) + ": " + printable(revision.message);
}

Json revision_json(const Store::Revision& revision) {
  Json json = {{"snapshot", revision.id}};
  if (!revision.chosen_by.empty()) json["chosen_by"] = revision.chosen_by;
  json["time"] = utc_text(revision.time);
  json["message"] = revision.message;
  return json;
}

}  // namespace batchfs
