#include "tools/cli/failure_line.h"

#include <cstdlib>
#include <string_view>

#include "engine/base/json.h"
#include "engine/base/shown_line.h"

namespace batchfs {

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::not_supported:
      return "not_supported";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::io:
      return "io";
    case ErrorCode::access_denied:
      return "access_denied";
    case ErrorCode::no_memory:
      return "no_memory";
    case ErrorCode::timed_out:
      return "timed_out";
    case ErrorCode::interrupted:
      return "interrupted";
    case ErrorCode::stale:
      return "stale";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

std::string failure_line(const std::string& what, const std::string& code,
                         const std::string& message) {
  const char* form = std::getenv("BATCHFS_ERRORS");
  if (form == nullptr || form != std::string_view("json"))
    return "batchfs: " + shown_line(what) + " failed: " + shown_line(message) + "\n";
  // Escaped here, too: a program shows it to a person.
  const Json line = {
      {"command", shown_line(what)}, {"code", code}, {"message", shown_line(message)}};
  return line.dump() + "\n";
}

}  // namespace batchfs
