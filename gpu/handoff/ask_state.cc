#include "gpu/handoff/ask_state.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/system_error.h"
#include "gpu/handoff/connect.h"
#include "gpu/handoff/message_bytes.h"
#include "gpu/handoff/messages.h"

namespace batchfs::handoff {

namespace {

Error no_sense(const std::string& path) {
  return Error(ErrorCode::corrupt, "the answer is not that of a batchfs process", path);
}

Descriptor connected(const std::string& path, std::chrono::milliseconds patience) {
  const int fd = connect_to(path, patience);
  if (fd >= 0) return Descriptor(fd);
  switch (errno) {
    case ENOENT:
    case ECONNREFUSED:
      throw Error(ErrorCode::not_found,
                  "no process serves this socket; start one with `batchfs serve`", path);
    case EPROTOTYPE:
      throw Error(ErrorCode::invalid_argument, "the socket is not of batchfs", path);
    case EAGAIN:
      throw Error(ErrorCode::timed_out, "the process accepts no connection", path);
    case EACCES:
      throw Error(ErrorCode::access_denied, "the socket is another user's", path);
    default:
      throw Error(ErrorCode::io, describe_system_error(errno), path);
  }
}

Error refusal(const std::vector<std::byte>& bytes, const std::string& path) {
  const auto message = read_as<RefusedMessage>(bytes);
  const std::uint64_t length = std::uint64_t{message.why_length} + message.where_length;
  if (length != bytes.size() - sizeof message) return no_sense(path);
  const std::string why(reinterpret_cast<const char*>(bytes.data()) + sizeof message,
                        message.why_length);
  // An older server, without this message, answers any first message but Hello like this.
  if (why == "the first message is not Hello")
    return Error(ErrorCode::not_supported,
                 "the process is an older batchfs, which does not tell its state over a socket; "
                 "start it again with this version",
                 path);
  const auto code = message.code <= static_cast<std::uint32_t>(ErrorCode::internal)
                        ? static_cast<ErrorCode>(message.code)
                        : ErrorCode::internal;
  return Error(code, printable(why), path);
}

/// Reads `length` bytes of a regular file (memory files are regular). Other files cannot be read at
/// an offset, or would block.
std::string text_in(int fd, std::uint64_t length, const std::string& path) {
  struct stat file;
  if (length > kMaxStateText || ::fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) ||
      static_cast<std::uint64_t>(file.st_size) < length)
    throw no_sense(path);
  std::string text(length, '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw no_sense(path);
    done += static_cast<std::size_t>(n);
  }
  return text;
}

}  // namespace

std::string ask_state(const std::string& path, StateText what, std::chrono::milliseconds patience) {
  const Descriptor socket = connected(path, patience);
  StateMessage question{{sizeof question, MessageType::state, kVersion}, what, 0};
  // A server that refuses the connection has sent its reason already: it is read below.
  send_message(socket.get(), std::as_bytes(std::span(&question, 1)));
  pollfd waiting{socket.get(), POLLIN, 0};
  int ready;
  do {
    ready = ::poll(&waiting, 1, static_cast<int>(patience.count()));
  } while (ready < 0 && errno == EINTR);
  if (ready != 1)
    throw Error(ErrorCode::timed_out,
                fmt::format("no answer within {} seconds; the process hangs, or is stopped",
                            std::chrono::duration<double>(patience).count()),
                path);
  ReceivedMessage answer;
  if (!receive_message(socket.get(), kMaxMessage, answer)) throw no_sense(path);
  const auto type = read_as<Header>(answer.bytes).type;
  if (type == MessageType::refused) throw refusal(answer.bytes, path);
  if (type != MessageType::state_text || answer.bytes.size() != sizeof(StateTextMessage) ||
      answer.descriptors.size() != 1)
    throw no_sense(path);
  const auto message = read_as<StateTextMessage>(answer.bytes);
  if (message.what != what) throw no_sense(path);
  return text_in(answer.descriptors[0].get(), message.length, path);
}

}  // namespace batchfs::handoff
