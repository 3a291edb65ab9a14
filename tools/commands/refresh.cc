// batchfs refresh: makes a mount or a server read its store again.

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/json.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "gpu/handoff/connect.h"
#include "gpu/handoff/message_bytes.h"
#include "gpu/handoff/messages.h"
#include "tools/cli/command.h"
#include "tools/service/mounts.h"

namespace batchfs {

namespace {

struct RefreshOptions {
  std::string place;  // a mount or a socket
  bool json = false, force = false;
};

std::string socket_of(const std::string& place) {
  struct stat at;
  if (::stat(place.c_str(), &at) == 0 && S_ISSOCK(at.st_mode)) return place;
  return require_batchfs_mount(place) + "/.batchfs/handoff.sock";
}

Error unreachable(int cause, const std::string& place) {
  if (cause == EACCES || cause == EPERM)
    return Error(ErrorCode::access_denied,
                 "it belongs to another user; run this as that user or as root", place);
  return Error(ErrorCode::io,
               cause == ENOENT || cause == ECONNREFUSED
                   ? "it takes no requests: its log says why there is no hand-off, and it must run "
                     "on this machine"
                   : std::strerror(cause),
               place);
}

/// Requests a refresh and waits until the store was read. Returns the changes as JSON.
std::string ask(const std::string& place, bool force) {
  const Descriptor socket(handoff::connect_to(socket_of(place)));
  if (socket.get() < 0) throw unreachable(errno, place);
  std::vector<std::byte> request(sizeof(handoff::Header));
  handoff::finish<handoff::Header>(
      request, force ? handoff::MessageType::force_refresh : handoff::MessageType::refresh);
  handoff::ReceivedMessage answer;
  if (!handoff::send_message(socket.get(), request) ||
      !handoff::receive_message(socket.get(), handoff::kMaxMessage, answer))
    throw Error(ErrorCode::io, "it ended without an answer", place);
  const auto header = handoff::read_as<handoff::Header>(answer.bytes);
  const auto text = [&answer](std::size_t from, std::size_t length) {
    if (from > answer.bytes.size() || length > answer.bytes.size() - from)
      throw Error(ErrorCode::corrupt, "its answer has the wrong length");
    return std::string(reinterpret_cast<const char*>(answer.bytes.data()) + from, length);
  };
  if (header.type == handoff::MessageType::refreshed) {
    const auto message = handoff::read_as<handoff::RefreshedMessage>(answer.bytes);
    return text(sizeof message, message.length);
  }
  if (header.type != handoff::MessageType::refused)
    throw Error(ErrorCode::corrupt, "its answer makes no sense", place);
  const auto message = handoff::read_as<handoff::RefusedMessage>(answer.bytes);
  const std::string why = text(sizeof message, message.why_length);
  throw Error(ErrorCode::io, why, text(sizeof message + message.why_length, message.where_length));
}

std::string changes_text(const Json& changes) {
  const std::string snapshot = printable(changes.at("snapshot").at("id").get<std::string>());
  if (!changes.at("changed").get<bool>()) {
    const std::string fixed = changes.value("fixed", "");
    return fixed.empty() ? fmt::format("nothing has changed: snapshot {}\n", snapshot)
                         : fmt::format("nothing changes: it shows {} for good\n", printable(fixed));
  }
  std::string text = fmt::format("snapshot {}\n", snapshot);
  for (const Json& view : changes.at("views")) {
    const auto count = [&view](const char* key) {
      return format_count(view.at(key).get<std::uint64_t>());
    };
    text +=
        fmt::format("view {}: {} batches, {}\n", printable(view.at("name").get<std::string>()),
                    count("batches"),
                    view.contains("batches_before") ? count("batches_before") + " before" : "new");
  }
  return text;
}

void show(const RefreshOptions& options, Output& output) {
  const std::string answer = ask(options.place, options.force);
  if (options.json) return output.write(printable(answer, LineBreaks::keep) + "\n");
  try {
    output.write(changes_text(parse_json(answer, options.place)));
  } catch (const Json::exception&) {
    throw Error(ErrorCode::corrupt, "its answer makes no sense", options.place);
  }
}

}  // namespace

CommandAction setup_refresh(CLI::App& app) {
  const auto options = std::make_shared<RefreshOptions>();
  app.add_option("DIR|SOCKET", options->place, "where it is mounted, or the socket of a server")
      ->required()
      ->type_name("");
  app.add_flag("--force", options->force,
               "read data again, too, where the store's metadata has not changed: chunks were "
               "rewritten in place");
  app.add_flag("--json", options->json, "write what has changed as JSON");
  return [options](Output& output) { show(*options, output); };
}

}  // namespace batchfs
