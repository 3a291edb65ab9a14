#include "gpu/handoff/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/view/order/order.h"
#include "gpu/handoff/message_bytes.h"

namespace batchfs::handoff {

namespace {

/// Messages taken at a time, so that no reader keeps the others waiting.
constexpr int kMessagesAtATime = 32;
/// Single batches in flight for one reader.
constexpr std::size_t kMaxGets = 64;
/// Batches that one reader may hold.
constexpr std::size_t kMaxLeases = 1 << 16;

}  // namespace

Connection::Connection(std::uint64_t id, int socket, ServerContext& context,
                       std::shared_ptr<ProcessShare> process, Complete complete)
    : id_(id),
      socket_(socket),
      context_(context),
      process_(std::move(process)),
      complete_(std::move(complete)),
      outbox_(socket) {
  ++process_->connections;
}

Connection::~Connection() {
  if (session_ != nullptr) session_->freeze();
  const auto asked = std::move(asked_);
  asked_.clear();
  for (const auto& [token, waiting] : asked)
    if (!waiting.done && waiting.opened != 0) delivery_->cancel(waiting.opened);
  context_.leases -= leases_.size();
  context_.held -= held_;
  for (; batches_ > 0; --batches_) process_->give_back(std::exchange(in_host_, 0));
  --process_->connections;
  ::close(socket_);
}

void Connection::take(std::uint64_t bytes) {
  held_ += bytes;
  context_.held += bytes;
  in_host_ += bytes;
  ++batches_;
  process_->take(bytes);
}

void Connection::give_back(const Asked& asked) {
  if (asked.taken) give_back(asked.bytes, true);
}

void Connection::give_back(std::uint64_t bytes, bool in_host) {
  held_ -= bytes;
  context_.held -= bytes;
  in_host_ -= in_host ? bytes : 0;
  --batches_;
  process_->give_back(in_host ? bytes : 0);
}

/// Is there room for another batch, besides those that this reader and its process hold?
bool Connection::fits(std::uint64_t bytes) const {
  return leases_.size() < kMaxLeases && (held_ == 0 || held_ + bytes <= delivery_->limit()) &&
         process_->fits(bytes, delivery_->host_limit(), in_host_ == 0);
}

Error Connection::no_room() const {
  return Error(ErrorCode::no_memory,
               fmt::format("this process holds {} batches, {} of memory, and another exceeds its "
                           "share; release earlier "
                           "batches, or copy what you need of them",
                           process_->batches(), format_size(process_->bytes())));
}

bool Connection::readable() {
  alignas(8) std::byte buffer[16 << 10];  // the longest that a reader sends: a Release
  static_assert(sizeof(ReleaseMessage) + kMaxReleases * sizeof(std::uint64_t) <= sizeof buffer);
  for (int i = 0; i < kMessagesAtATime && !deaf(); ++i) {
    iovec part{buffer, sizeof buffer};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    // No room for control data: descriptors that a reader sends are dropped by the kernel.
    const ssize_t got = ::recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    try {
      if ((message.msg_flags & MSG_TRUNC) != 0)
        throw Error(ErrorCode::invalid_argument, "a message is too long");
      if (!handle({buffer, static_cast<std::size_t>(got)})) return false;
    } catch (...) {  // a failing reader must not affect the others
      refuse(error_of(std::current_exception()));
      return false;
    }
  }
  return outbox_.flush();
}

bool Connection::handle(std::span<const std::byte> bytes) {
  const auto header = read_as<Header>(bytes);
  if (header.length != bytes.size())
    throw Error(ErrorCode::invalid_argument, "a message has another length than it says");
  if (header.version == 0)
    throw Error(ErrorCode::not_supported, "there is no version 0 of the protocol");
  const bool forces = header.type == MessageType::force_refresh;
  if ((forces || header.type == MessageType::refresh) && !has_purpose() && !state_asked_) {
    refresh(forces);
    return true;
  }
  if (!greeted() &&
      ((header.type != MessageType::hello && header.type != MessageType::state) || refreshing_))
    throw Error(ErrorCode::invalid_argument, "the first message is not Hello");
  switch (header.type) {
    case MessageType::hello:
      hello(read_exactly<HelloMessage>(bytes));
      break;
    case MessageType::start:
      start(read_exactly<StartMessage>(bytes));
      break;
    case MessageType::get:
      get(read_exactly<GetMessage>(bytes));
      break;
    case MessageType::release:
      release(bytes);
      break;
    case MessageType::want:
      want(read_exactly<WantMessage>(bytes));
      break;
    case MessageType::state:
      state(read_exactly<StateMessage>(bytes));
      break;
    default:
      throw Error(ErrorCode::not_supported, fmt::format("there is no message of type {}",
                                                        static_cast<unsigned>(header.type)));
  }
  return outbox_.flush();
}

void Connection::hello(const HelloMessage& message) {
  if (greeted()) throw Error(ErrorCode::invalid_argument, "Hello is said once");
  if (message.name_length > sizeof message.name)
    throw Error(ErrorCode::invalid_argument, "the view's name is too long");
  if (message.world < 1 || message.world > kMaxWorld || message.rank < 0 ||
      message.rank >= message.world)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("there is no rank {} of {}", message.rank, message.world));
  const std::string name(message.name, message.name_length);
  view_ = find_view(context_.views, name);
  for (Delivery* delivery : context_.deliveries) {
    if (message.mode != Mode::automatic && message.mode != delivery->mode()) continue;
    if (!delivery->serves(message)) continue;
    delivery_ = delivery;
    break;
  }
  if (delivery_ == nullptr) {
    view_ = nullptr;
    for (const UnsupportedGpu& gpu : context_.unsupported_gpus)
      if (message.mode == Mode::server && std::ranges::equal(gpu.uuid, message.gpu_uuid))
        throw Error(ErrorCode::not_supported, "the reader's GPU is " + gpu.why);
    throw Error(ErrorCode::not_supported,
                "this server does not hand batches over in the mode that was asked for");
  }
  rank_ = message.rank;
  world_ = message.world;
  version_ = std::min(kVersion, message.header.version);
  description_ = view_->description(context_.reserve);
  Outgoing out{welcome_message(*view_, *description_, delivery_->mode(), version_),
               {description_->file.fd()},
               nullptr};
  Delivery::Session session = delivery_->session(message);
  if (session.delivery != nullptr) {
    session_ = std::move(session.delivery);
    delivery_ = session_.get();
    out.descriptors.push_back(session.fd);
    out.held =
        std::shared_ptr<const void>(nullptr, [fd = session.fd](const void*) { ::close(fd); });
  }
  outbox_.add(std::move(out));
}

void Connection::refresh(bool force) {
  if (!context_.refresh) throw Error(ErrorCode::not_supported, "the store is not read again here");
  refreshing_ = true;
  context_.refresh(
      force, [id = id_, complete = complete_](std::string changes, std::exception_ptr error) {
        complete({.connection = id, .error = std::move(error), .refreshed = std::move(changes)});
      });
}

void Connection::start(const StartMessage& message) {
  if (message.stream == 0) throw Error(ErrorCode::invalid_argument, "a stream needs a number");
  if (message.count < 0 || message.step < 1 || message.step > UINT32_MAX)
    throw Error(ErrorCode::invalid_argument, "a stream's count or step is out of range");
  if (message.depth < 1 || message.depth > kMaxDepth)
    throw Error(ErrorCode::invalid_argument, fmt::format("a stream's depth is 1 to {}", kMaxDepth));
  require_epoch(*view_, message.epoch);
  if (message.count > 0 && (!has_batch(*view_, message.first) ||
                            message.count - 1 > (INT64_MAX - message.first) / message.step ||
                            !has_batch(*view_, message.first + (message.count - 1) * message.step)))
    throw Error(ErrorCode::not_found,
                fmt::format("an epoch has {} batches: not {} from {} on in steps of {}",
                            view_->view->batches(), message.count, message.first, message.step));
  end_stream();
  stream_ = {};
  stream_.id = message.stream;
  stream_.series = ++last_series_;
  stream_.epoch = message.epoch;
  stream_.first = message.first;
  stream_.step = message.step;
  stream_.count = message.count;
  stream_.depth = message.depth;
  stream_.ended = false;
  if (version_ >= 3)
    stream_.earlier = static_cast<std::size_t>(std::count_if(
        leases_.begin(), leases_.end(), [](const auto& lease) { return lease.second.in_slot(); }));
  pump();
}

void Connection::end_stream() {
  for (const std::uint64_t token : stream_.asked) {
    const auto it = asked_.find(token);
    const Asked asked = std::move(it->second);
    asked_.erase(it);
    give_back(asked);
    if (!asked.done && asked.opened != 0) delivery_->cancel(asked.opened);
  }
  stream_.asked.clear();
  stream_.ended = true;
}

void Connection::get(const GetMessage& message) {
  if (message.request == 0) throw Error(ErrorCode::invalid_argument, "a request needs a number");
  if (gets_ >= kMaxGets)
    throw Error(ErrorCode::invalid_argument, "too many batches were asked for at once");
  Asked asked{.request = message.request, .epoch = message.epoch, .batch = message.batch};
  try {
    require_epoch(*view_, message.epoch);
    if (!has_batch(*view_, message.batch))
      throw Error(ErrorCode::not_found, fmt::format("there is no batch {}: an epoch has {}",
                                                    message.batch, view_->view->batches()));
    asked.bytes = delivery_->bytes(*view_->view, message.batch);
    if (!fits(asked.bytes)) throw no_room();
  } catch (const Error& error) {
    send_failed(asked, error);
    return;
  }
  ++gets_;
  // In its rank's order if the batch belongs to it, so that reading by number is prefetched, too.
  const bool own = message.batch % world_ == rank_;
  ask(std::move(asked), own ? rank_ : 0, own ? world_ : 1);
}

void Connection::release(std::span<const std::byte> bytes) {
  const auto message = read_as<ReleaseMessage>(bytes);
  if (message.count > kMaxReleases ||
      bytes.size() != sizeof message + std::size_t{message.count} * sizeof(std::uint64_t))
    throw Error(ErrorCode::invalid_argument, "a message has the wrong length");
  for (std::uint32_t i = 0; i < message.count; ++i) {
    std::uint64_t lease;
    std::memcpy(&lease, bytes.data() + sizeof message + i * sizeof lease, sizeof lease);
    const auto it = leases_.find(lease);
    if (it == leases_.end())
      throw Error(ErrorCode::invalid_argument, "a lease was released that is not held");
    if (it->second.series == stream_.series && !stream_.ended)
      --stream_.unreleased;
    else if (it->second.in_slot() && stream_.earlier > 0)
      --stream_.earlier;
    if (it->second.delivered != nullptr) give_back(it->second.bytes, it->second.in_host);
    --context_.leases;
    leases_.erase(it);
  }
  pump();
}

void Connection::want(const WantMessage& message) {
  if (message.depth < 1 || message.depth > kMaxDepth)
    throw Error(ErrorCode::invalid_argument, fmt::format("a stream's depth is 1 to {}", kMaxDepth));
  if (stream_.ended || message.stream != stream_.id) return;  // said before its End came
  stream_.depth = message.depth;
  const std::uint64_t sent = static_cast<std::uint64_t>(stream_.next) - stream_.asked.size();
  stream_.wanted = message.received == sent && stream_.asked.empty();
  pump();
}

void Connection::state(const StateMessage& message) {
  if (context_.teller == nullptr)
    throw Error(ErrorCode::not_supported,
                "this is the socket of a mount; name the mount's directory instead");
  if (state_asked_)
    throw Error(ErrorCode::invalid_argument, "a text was asked for before the last one came");
  if (message.what < StateText::status || message.what > StateText::log)
    throw Error(ErrorCode::not_supported, fmt::format("there is no text {} of the state",
                                                      static_cast<unsigned>(message.what)));
  context_.teller->ask(message.what,
                       [complete = complete_, id = id_](std::shared_ptr<const MemoryFile> text,
                                                        std::exception_ptr error) {
                         complete({id, 0, nullptr, error, std::move(text)});
                       });
  state_asked_ = message.what;
}

/// Throws the text's error.
void Connection::send_state(const Completion& completion) {
  if (!state_asked_) return;
  StateTextMessage message{};
  message.what = *std::exchange(state_asked_, std::nullopt);
  if (completion.error) std::rethrow_exception(completion.error);
  message.length = completion.text->size();
  outbox_.add(
      {message_of(message, MessageType::state_text), {completion.text->fd()}, completion.text});
}

/// May the stream's next batch be made now?
bool Connection::may_go_on(const Asked& asked) const {
  const std::size_t under_way = stream_.asked.size() + stream_.unreleased;
  if (under_way + stream_.earlier == 0 || (stream_.wanted && stream_.asked.empty())) return true;
  const bool ahead = under_way > 0;
  return (!ahead || (under_way < stream_.depth && fits(asked.bytes) &&
                     context_.held + asked.bytes <= delivery_->limit() / 2 &&
                     process_->fits_ahead(asked.bytes, delivery_->host_limit()))) &&
         under_way + stream_.earlier <
             delivery_->slots(request_of(asked, asked.batch % stream_.step, stream_.step));
}

/// Requests as many batches of the stream as may be in flight, and sends those that are complete.
void Connection::pump() {
  if (stream_.ended) return;
  while (stream_.next < stream_.count) {
    Asked asked{.epoch = stream_.epoch, .batch = stream_.first + stream_.next * stream_.step};
    asked.bytes = delivery_->bytes(*view_->view, asked.batch);
    if (!may_go_on(asked)) break;
    const bool full = !fits(asked.bytes);
    ++stream_.next;
    stream_.wanted = false;
    if (full) {
      // The reader waits, but the batches that its own process holds leave no room.
      asked.done = true;
      asked.error = std::make_exception_ptr(no_room());
      stream_.asked.push_back(++last_token_);
      asked_.emplace(last_token_, std::move(asked));
      continue;
    }
    const std::int64_t rank = asked.batch % stream_.step;
    stream_.asked.push_back(last_token_ + 1);
    ask(std::move(asked), rank, stream_.step);
  }
  while (!stream_.asked.empty()) {
    const auto it = asked_.find(stream_.asked.front());
    if (!it->second.done) return;
    Asked asked = std::move(it->second);
    asked_.erase(it);
    stream_.asked.pop_front();
    send(std::move(asked));
  }
  if (stream_.next < stream_.count) return;
  EndMessage end{};
  end.stream = stream_.id;
  outbox_.add({message_of(end, MessageType::end), {}, nullptr});
  stream_.ended = true;
}

std::uint64_t Connection::ask(Asked asked, std::int64_t rank, std::int64_t world) {
  const std::uint64_t token = ++last_token_;
  BatchRequest request = request_of(asked, rank, world);
  const auto order = asked.request == 0 ? Delivery::Order::stream : Delivery::Order::single;
  take(asked.bytes);
  asked.taken = true;
  asked_.emplace(token, std::move(asked));
  const std::uint64_t opened = delivery_->open(
      std::move(request), order,
      [complete = complete_, id = id_, token](std::shared_ptr<const DeliveredBatch> delivered,
                                              std::exception_ptr error) {
        complete({id, token, std::move(delivered), error});
      });
  asked_.at(token).opened = opened;
  return token;
}

bool Connection::completed(Completion completion) {
  if (refreshing_) {
    if (completion.error)
      refuse(error_of(completion.error));
    else
      outbox_.add({refreshed_message(completion.refreshed.value_or("")), {}, nullptr});
    outbox_.flush();
    return false;
  }
  if (completion.token == 0) {
    try {
      send_state(completion);
      return outbox_.flush();
    } catch (...) {
      refuse(error_of(std::current_exception()));
      return false;
    }
  }
  const auto it = asked_.find(completion.token);
  if (it == asked_.end()) return true;  // its reader has left
  it->second.done = true;
  it->second.delivered = std::move(completion.delivered);
  it->second.error = completion.error;
  try {
    if (it->second.request == 0) {
      pump();
    } else {
      Asked asked = std::move(it->second);
      asked_.erase(it);
      --gets_;
      send(std::move(asked));
    }
    return outbox_.flush();
  } catch (...) {
    refuse(error_of(std::current_exception()));
    return false;
  }
}

void Connection::send(Asked asked) {
  if (asked.error) {
    give_back(asked);
    send_failed(asked, error_of(asked.error));
    return;
  }
  BatchMessage message{};
  message.lease = ++last_lease_;
  message.stream = asked.request == 0 ? stream_.id : 0;
  message.request = asked.request;
  message.epoch = asked.epoch;
  message.batch = asked.batch;
  const DeliveredBatch& delivered = *asked.delivered;
  Outgoing out;
  try {
    out = batch_message(*view_, delivered, message, version_, attached_, context_.reserve);
  } catch (const Error& error) {
    give_back(asked);
    send_failed(asked, error);
    return;
  }
  if (asked.request == 0) ++stream_.unreleased;
  const bool in_host = std::any_of(
      delivered.memories.begin(), delivered.memories.end(),
      [](const DeliveredBatch::Memory& memory) { return memory.kind == MemoryKind::host; });
  if (!in_host) {
    process_->leave_host(asked.bytes);
    in_host_ -= asked.bytes;
  }
  leases_.emplace(message.lease,
                  Lease{std::move(asked.delivered), asked.bytes,
                        asked.request == 0 ? stream_.series : 0, in_host, out.windows});
  ++context_.leases;
  ++context_.delivered;
  outbox_.add(std::move(out));
}

void Connection::send_failed(const Asked& asked, const Error& error) {
  FailedMessage message{};
  message.request = asked.request;
  message.epoch = asked.epoch;
  message.batch = asked.batch;
  if (asked.request == 0) {
    message.lease = ++last_lease_;
    message.stream = stream_.id;
    ++stream_.unreleased;
    ++context_.leases;
    leases_.emplace(message.lease, Lease{nullptr, 0, stream_.series, false});
  }
  outbox_.add({message_of(message, MessageType::failed, error), {}, nullptr});
}

void Connection::refuse(const Error& error) {
  outbox_.clear();
  outbox_.add({message_of(RefusedMessage{}, MessageType::refused, error), {}, nullptr});
  outbox_.flush();
}

}  // namespace batchfs::handoff
