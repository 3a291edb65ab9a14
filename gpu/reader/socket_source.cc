#include "gpu/reader/socket_source.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>

#include "engine/base/descriptor_passing.h"
#include "engine/base/error.h"

namespace batchfs::reader {

using namespace handoff;

namespace {

constexpr std::uint64_t kMaxDeviceMemory = std::uint64_t{24} << 30;
/// Interval of checks whether a GPU still works on batches.
constexpr int kLookForReturnsMilliseconds = 2;

/// The error in a Failed or Refused.
template <class Message>
Error error_of(std::span<const std::byte> bytes) {
  const auto message = read_as<Message>(bytes);
  const std::span<const std::byte> texts = bytes.subspan(sizeof message);
  if (std::uint64_t{message.why_length} + message.where_length != texts.size())
    throw Lost{"a message of the server has the wrong length"};
  const auto* text = reinterpret_cast<const char*>(texts.data());
  const auto code = message.code <= static_cast<std::uint32_t>(ErrorCode::internal)
                        ? static_cast<ErrorCode>(message.code)
                        : ErrorCode::internal;
  return Error(code, std::string(text, message.why_length),
               std::string(text + message.why_length, message.where_length));
}

}  // namespace

SocketSource::SocketSource(int socket, const Options& options, const Interrupted& interrupted)
    : link_(std::make_shared<Link>(socket)), buffer_(kMaxMessage), device_(options.device) {
  auto hello = make<HelloMessage>(MessageType::hello);
  if (options.view.size() > sizeof hello.name)
    throw Error(ErrorCode::not_found, "there is no view of so long a name");
  hello.mode = options.mode;
  hello.kinds = bit(MemoryKind::host);
  if (device_ != nullptr) {
    hello.kinds |= bit(MemoryKind::device_fd);
    std::memcpy(hello.gpu_uuid, device_->uuid().data(), sizeof hello.gpu_uuid);
  }
  const CudaDecoderTable* decoder = nullptr;
  if (device_ != nullptr && (options.mode == Mode::automatic || options.mode == Mode::client)) {
    const char* why = nullptr;
    decoder = options.decoder != nullptr ? options.decoder : cuda_decoder(&why);
    if (decoder == nullptr && options.mode == Mode::client)
      throw Error(ErrorCode::not_supported, why);
    CudaFailure failure{};
    if (decoder != nullptr && decoder->supports(device_->number(), &failure) != 0) {
      if (options.mode == Mode::client)
        throw Error(static_cast<ErrorCode>(failure.code), failure.text);
      why_not_client_ = failure.text;
      decoder = nullptr;
    }
    if (decoder != nullptr) {
      const std::uint64_t memory = options.device_memory != 0
                                       ? options.device_memory
                                       : std::min(device_->free_memory() / 4, kMaxDeviceMemory);
      hello.kinds |= bit(MemoryKind::own);
      hello.device_mib =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(memory >> 20, UINT32_MAX));
    }
  }
  hello.rank = options.rank;
  hello.world = options.world;
  hello.name_length = static_cast<std::uint32_t>(options.view.size());
  std::memcpy(hello.name, options.view.data(), options.view.size());
  try {
    link_->send(&hello, sizeof hello);
  } catch (const Lost&) {  // refused at once: the reason can be read
  }

  std::vector<Descriptor> descriptors;
  const std::span<const std::byte> bytes = receive(descriptors, interrupted, kGreetingMilliseconds);
  if (read_as<Header>(bytes).type != MessageType::welcome)
    throw Lost{"it does not answer as a batchfs process does"};
  const auto welcome = read_as<WelcomeMessage>(bytes);
  mode_ = welcome.mode;
  std::uint64_t length = 0;
  if (descriptors.size() != (mode_ == Mode::client ? 2u : 1u) ||
      (mode_ == Mode::client && decoder == nullptr) ||
      __builtin_add_overflow(welcome.schema_length, welcome.view_length, &length) ||
      length > (1u << 30))
    throw Lost{"its description of the view cannot be read"};
  CoordinatesRecord record{};
  const bool labelled = welcome.header.version >= 2;
  const std::uint64_t begin = (length + 7) / 8 * 8;
  if (labelled) {
    record = read_as<CoordinatesRecord>(bytes.subspan(sizeof welcome));
    if (record.length > kMaxCoordinates + (1u << 20))
      throw Lost{"its coordinates of the view are too long"};
  }
  if (welcome.header.version >= 4)
    reading_ = read_as<ReadingRecord>(bytes.subspan(sizeof welcome + sizeof record));
  const auto texts = Mapping::read_from(descriptors[0].get(), length);
  const auto* text = reinterpret_cast<const char*>(texts->data());
  schema_ = std::make_shared<const Schema>(
      parse_schema(std::string(text, welcome.schema_length),
                   std::string(text + welcome.schema_length, welcome.view_length)));
  if (schema_->tensors.size() != welcome.tensor_count || schema_->batches != welcome.batches ||
      static_cast<std::uint32_t>(schema_->remainder) != welcome.remainder)
    throw Lost{"its description of the view contradicts itself"};
  if (labelled)
    coordinates_ = received_coordinates(
        Mapping::of_file(descriptors[0].get(), begin + record.length), begin, record, schema_);
  if (mode_ == Mode::client)
    decoders_ = std::make_unique<Decoders>(*decoder, descriptors[1].release(), device_);
}

const char* SocketSource::mode() const {
  return mode_ == Mode::client ? "client" : mode_ == Mode::server ? "server" : "shm";
}

std::string SocketSource::why_copied() const {
  const std::string counted = fallbacks_.text(), failed = decoders_ != nullptr
                                                              ? decoders_->why_failed()
                                                          : mode_ == Mode::server ? std::string()
                                                                                  : why_not_client_;
  return failed.empty() || counted.empty() ? failed + counted : failed + "; " + counted;
}

/// Returns one message, in buffer_, and its descriptors. Empty if there is none and `milliseconds`
/// is 0.
std::span<const std::byte> SocketSource::receive(std::vector<Descriptor>& descriptors,
                                                 const Interrupted& interrupted, int milliseconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    PassedMessage received =
        receive_passed(link_->socket(), buffer_, kMaxDescriptors, MSG_DONTWAIT);
    if (received.size > 0) {
      const std::span<const std::byte> bytes(buffer_.data(),
                                             static_cast<std::size_t>(received.size));
      if (received.cut == PassedMessage::Cut::bytes ||
          read_as<Header>(bytes).length != bytes.size())
        throw Lost{"a message of the server has the wrong length"};
      if (received.cut == PassedMessage::Cut::descriptors)
        throw Error(ErrorCode::no_memory,
                    "this process has too many files open to take a batch; raise the limit (ulimit "
                    "-n) or let go of batches");
      if (read_as<Header>(bytes).type == MessageType::refused)
        throw error_of<RefusedMessage>(bytes);
      descriptors = std::move(received.descriptors);
      return bytes;
    }
    // A connection is reset when the other end has not read all of it.
    if (received.size == 0 || errno == ECONNRESET)
      throw Lost{.why = "it has ended its connection", .closed = true};
    if (errno != EAGAIN) throw Lost{std::string("its connection broke: ") + std::strerror(errno)};
    if (milliseconds == 0) return {};
    int wait = kLookMilliseconds;
    if (milliseconds >= 0) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) throw Lost{"it does not answer"};
      wait = static_cast<int>(std::min<std::int64_t>(wait, left.count() + 1));
    }
    pollfd waiting{link_->socket(), POLLIN, 0};
    ::poll(&waiting, 1, wait);
    if ((waiting.revents & POLLIN) == 0 && interrupted && interrupted())
      throw Error(ErrorCode::interrupted, "the call was interrupted");
  }
}

/// The memory of a record: new, with the next descriptor, or an earlier piece.
SocketSource::Piece SocketSource::piece_of(const MemoryRecord& record,
                                           std::span<const Descriptor> descriptors,
                                           std::size_t& next_descriptor) {
  if (record.kind == MemoryKind::own && decoders_ != nullptr) {
    Piece piece{record.id, nullptr, decoders_->memory(record.id)};
    if (piece.device == nullptr) throw Lost{"it sent a batch of programs that are not known"};
    return piece;
  }
  const bool on_device = record.kind == MemoryKind::device_fd && device_ != nullptr;
  if (record.kind != MemoryKind::host && !on_device)
    throw Lost{"it sent memory of a kind that was not asked for"};
  if ((record.flags & kMemoryAttached) == 0) {
    const auto it = kept_.find(record.kind);
    if (it == kept_.end() || it->second.id != record.id)
      throw Lost{"it sent a batch in memory that is not known"};
    return it->second;
  }
  if (next_descriptor >= descriptors.size()) throw Lost{"it sent a batch without its memory"};
  const int fd = descriptors[next_descriptor++].get();
  Piece piece{record.id, nullptr, nullptr};
  if ((record.flags & kMemoryTransient) == 0)
    kept_.erase(record.kind);  // before the new: there may be no room for both
  if (on_device) {
    try {
      piece.device = device_->map(fd, record.size);
    } catch (const Error& error) {
      throw Lost{error.what(), true};
    }
  } else {
    piece.host = Mapping::of_file(fd, record.size);
  }
  if ((record.flags & kMemoryTransient) == 0) kept_[record.kind] = piece;
  return piece;
}

std::shared_ptr<Batch> SocketSource::batch_of(std::span<const std::byte> bytes,
                                              std::span<const Descriptor> descriptors) {
  const auto message = read_as<BatchMessage>(bytes);
  const std::uint64_t expected = sizeof message +
                                 std::uint64_t{message.memory_count} * sizeof(MemoryRecord) +
                                 std::uint64_t{message.tensor_count} * sizeof(TensorRecord) +
                                 std::uint64_t{message.dim_count} * sizeof(std::int64_t);
  const bool labelled = coordinates_ != nullptr;
  if ((labelled ? bytes.size() < expected : bytes.size() != expected) ||
      message.tensor_count != schema_->tensors.size())
    throw Lost{"its description of a batch has the wrong length"};
  auto batch = std::make_shared<Batch>();
  batch->schema = schema_;
  batch->epoch = message.epoch;
  batch->number = message.batch;
  batch->samples = message.samples;
  batch->coordinates = coordinates_;
  // From now on the lease is returned on every path.
  batch->release = [link = link_, lease = message.lease] { link->release(lease); };

  std::size_t next_descriptor = 0;
  for (std::uint32_t m = 0; m < message.memory_count; ++m) {
    const auto record =
        read_as<MemoryRecord>(bytes.subspan(sizeof message + m * sizeof(MemoryRecord)));
    Piece piece = piece_of(record, descriptors, next_descriptor);
    if (piece.device != nullptr)
      batch->device_memory.push_back(std::move(piece.device));
    else
      batch->memory.push_back(std::move(piece.host));
  }
  if (!batch->device_memory.empty()) {
    if (!batch->memory.empty()) throw Lost{"it sent a batch in two kinds of memory"};
    batch->use = device_->new_use();
    batch->device = device_;
  }
  const std::size_t tensors_at = sizeof message + message.memory_count * sizeof(MemoryRecord);
  std::size_t dims_at = tensors_at + message.tensor_count * sizeof(TensorRecord);
  for (std::uint32_t t = 0; t < message.tensor_count; ++t) {
    const auto record = read_as<TensorRecord>(bytes.subspan(tensors_at + t * sizeof(TensorRecord)));
    Tensor tensor{.info = &schema_->tensors[t]};
    if (record.rank > (bytes.size() - dims_at) / sizeof(std::int64_t))
      throw Lost{"a tensor has more dims than were sent"};
    tensor.shape.resize(record.rank);
    if (record.rank > 0)
      std::memcpy(tensor.shape.data(), bytes.data() + dims_at, record.rank * sizeof(std::int64_t));
    dims_at += record.rank * sizeof(std::int64_t);
    tensor.bytes = bytes_of(tensor.shape, tensor.info->dtype.itemsize);
    if (record.memory >= message.memory_count)
      throw Lost{"a tensor lies in memory that was not sent"};
    const bool on_device = batch->device != nullptr;
    const std::uint64_t size = on_device ? batch->device_memory[record.memory]->size()
                                         : batch->memory[record.memory]->size();
    if (tensor.bytes != record.bytes || record.bytes > size || record.offset > size - record.bytes)
      throw Lost{"a tensor lies outside of its memory"};
    tensor.data = (on_device ? batch->device_memory[record.memory]->data()
                             : batch->memory[record.memory]->data()) +
                  record.offset;
    batch->tensors.push_back(std::move(tensor));
  }
  if (labelled)
    batch->windows =
        windows_in(bytes.subspan(expected), descriptors.subspan(next_descriptor), batch->samples);
  return batch;
}

/// The last part of a Batch: its samples' numbers and windows.
std::shared_ptr<const Windows> SocketSource::windows_in(std::span<const std::byte> bytes,
                                                        std::span<const Descriptor> descriptors,
                                                        std::int64_t samples) const {
  const auto record = read_as<WindowsRecord>(bytes);
  if (record.samples != samples || samples > kMaxSamples)
    throw Lost{"it sent another number of windows than of samples"};
  const std::size_t size = std::size_t{record.samples} * (1 + schema_->windows.size()) * 8;
  const std::byte* data = bytes.data() + sizeof record;
  std::shared_ptr<const Mapping> file;
  if (record.attached != 0) {
    if (descriptors.empty()) throw Lost{"it sent a batch without its windows"};
    file = Mapping::read_from(descriptors.front().get(), size);
    data = file->data();
  }
  if (bytes.size() - sizeof record != (record.attached != 0 ? 0 : size))
    throw Lost{"it sent another number of windows than of samples"};
  Windows::Values values(size / 8);
  if (size > 0) std::memcpy(values.data(), data, size);
  return std::make_shared<const Windows>(*schema_, samples, std::move(values));
}

/// Receives one message and stores it. False if there is none and the call does not wait.
bool SocketSource::receive_answer(const Interrupted& interrupted, int milliseconds) {
  std::vector<Descriptor> descriptors;
  const std::span<const std::byte> bytes = receive(descriptors, interrupted, milliseconds);
  if (bytes.empty()) return false;
  Answer answer;
  std::uint64_t stream = 0, request = 0;
  switch (read_as<Header>(bytes).type) {
    case MessageType::batch: {
      const auto message = read_as<BatchMessage>(bytes);
      stream = message.stream;
      request = message.request;
      try {
        answer.batch = batch_of(bytes, descriptors);
        if (device_ != nullptr) fallbacks_.add(message.fallback);
      } catch (const Error&) {  // no memory to map it to, or an unsupported kind
        answer.error = std::current_exception();
      }
      break;
    }
    case MessageType::failed: {
      const auto message = read_as<FailedMessage>(bytes);
      stream = message.stream;
      request = message.request;
      answer.error = std::make_exception_ptr(error_of<FailedMessage>(bytes));
      if (message.lease != 0) link_->release(message.lease);
      break;
    }
    case MessageType::end:
      stream = read_as<EndMessage>(bytes).stream;
      break;
    default:
      throw Lost{"it sent a message of the unknown type " +
                 std::to_string(static_cast<int>(read_as<Header>(bytes).type)) +
                 "; reader and server versions differ"};
  }
  // Batches of an earlier stream, or of an interrupted request, are returned.
  if (request != 0) {
    if (const auto it = answered_.find(request); it != answered_.end())
      it->second = std::move(answer);
  } else if (stream == stream_) {
    arrived_.push_back(std::move(answer));
    ++received_;
  }
  return true;
}

void SocketSource::start(const Series& series, std::uint32_t ahead) {
  arrived_.clear();
  received_ = 0;
  held_of_stream_ = std::make_shared<std::atomic<std::uint32_t>>(0);
  ahead_ = std::min(ahead, kMaxDepth - 1);
  auto message = make<StartMessage>(MessageType::start);
  message.stream = ++stream_;
  message.epoch = series.epoch;
  message.first = series.first;
  message.step = series.step;
  message.count = series.count;
  message.depth = depth_ = ahead_ + 1;
  ended_ = false;
  link_->send(&message, sizeof message);
}

/// While a GPU works on batches that the consumer has released, the next one comes into the slot of
/// one of them: the host, which makes batches beyond the slots, would take many times as long. Ends
/// with the next batch, with the last of the returns, or after kPatience: the GPU may wait for the
/// next action of this thread.
void SocketSource::wait_for_returns(const Interrupted& interrupted) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (arrived_.empty() && held_->returning > 0 && std::chrono::steady_clock::now() < until) {
    pollfd waiting{link_->socket(), POLLIN, 0};
    ::poll(&waiting, 1, kLookForReturnsMilliseconds);
    receive_answer(interrupted, 0);
    if (arrived_.empty() && interrupted && interrupted())
      throw Error(ErrorCode::interrupted, "the call was interrupted");
  }
}

std::shared_ptr<Batch> SocketSource::next(const Interrupted& interrupted) {
  if (ended_) return nullptr;
  // Takes a batch that has arrived without a message: each message wakes the server.
  while (arrived_.empty() && receive_answer(interrupted, 0)) {
  }
  const std::uint32_t depth = std::clamp(*held_of_stream_ + ahead_, 1u, kMaxDepth);
  const auto say = [&](std::uint64_t received) {
    auto message = make<WantMessage>(MessageType::want);
    message.stream = stream_;
    message.depth = depth_ = depth;
    message.received = received;
    link_->send(&message, sizeof message);
  };
  if (depth > depth_) say(kOnlyDepth);
  wait_for_returns(interrupted);
  if (arrived_.empty() && held_->batches > 0) say(received_);
  while (arrived_.empty()) receive_answer(interrupted);
  Answer answer = std::move(arrived_.front());
  arrived_.pop_front();
  if (answer.error) std::rethrow_exception(answer.error);
  if (answer.batch == nullptr) {
    ended_ = true;
    return nullptr;
  }
  ++held_->batches;
  ++*held_of_stream_;
  answer.batch->let_go = [held = held_] { ++held->returning; };
  answer.batch->release = [release = std::move(answer.batch->release), held = held_,
                           of_stream = held_of_stream_] {
    release();  // before the next Want
    --*of_stream;
    --held->batches;
    --held->returning;
  };
  return std::move(answer.batch);
}

std::shared_ptr<Batch> SocketSource::get(std::int64_t epoch, std::int64_t batch,
                                         const Interrupted& interrupted) {
  auto message = make<GetMessage>(MessageType::get);
  message.request = ++last_request_;
  message.epoch = epoch;
  message.batch = batch;
  Answer& answer = answered_[message.request];
  struct Forget {
    std::map<std::uint64_t, Answer>& answered;
    std::uint64_t request;
    ~Forget() { answered.erase(request); }
  } forget{answered_, message.request};
  link_->send(&message, sizeof message);
  while (answer.batch == nullptr && !answer.error) receive_answer(interrupted);
  if (answer.error) std::rethrow_exception(answer.error);
  return std::move(answer.batch);
}

}  // namespace batchfs::reader
