#include "gpu/reader/decoders.h"

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <vector>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "gpu/handoff/messages.h"
#include "gpu/handoff/protocol.h"
#include "gpu/reader/process.h"

namespace batchfs::reader {

using namespace handoff;

namespace {

constexpr std::uint64_t kMaxText = std::uint64_t{1} << 31;  // a setup, a program

/// A memory file's bytes. Throws corrupt.
std::vector<std::byte> bytes_of_file(int fd, std::uint64_t size) {
  if (size > kMaxText) throw Error(ErrorCode::corrupt, "a program is too large");
  std::vector<std::byte> bytes(size);
  for (std::uint64_t at = 0; at < size;) {
    const ssize_t got = ::pread(fd, bytes.data() + at, size - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw Error(ErrorCode::corrupt, "a program is shorter than it should be");
    at += static_cast<std::uint64_t>(got);
  }
  return bytes;
}

Error error_of(const CudaFailure& failure) {
  const bool is_known = failure.code <= static_cast<std::uint32_t>(ErrorCode::internal);
  return Error(is_known ? static_cast<ErrorCode>(failure.code) : ErrorCode::internal, failure.text);
}

/// Reports to the server why no program of the series runs any more.
/// `interrupted`: the reader leaves.
void send_end(int socket, ErrorCode code) {
  EndedMessage message{};
  message.header = {sizeof message, MessageType::ended, kVersion};
  message.code = static_cast<std::uint32_t>(code);
  send_message(socket,
               std::as_bytes(std::span(&message, 1)));  // a server that has left needs no answer
}

template <class Message>
Message read_as(std::span<const std::byte> bytes, MessageType type) {
  Message message;
  if (bytes.size() != sizeof message)
    throw Error(ErrorCode::corrupt, "a message about programs has the wrong length");
  std::memcpy(&message, bytes.data(), sizeof message);
  if (message.header.type != type)
    throw Error(ErrorCode::corrupt, "a message about programs is of another type");
  return message;
}

}  // namespace

/// The device's side, alive as long as programs run or a batch is held.
class Decoders::Decoder {
 public:
  Decoder(const CudaDecoderTable& table, std::shared_ptr<Device> device,
          std::span<const std::byte> setup, int staging, std::uint64_t size)
      : table_(table), device_(std::move(device)), process_(this_process()), size_(size) {
    struct stat at;
    if (::fstat(staging, &at) != 0 || static_cast<std::uint64_t>(at.st_size) < size || size == 0)
      throw Error(ErrorCode::corrupt, "staging memory is shorter than it should be");
    staging_ = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, staging, 0);
    if (staging_ == MAP_FAILED)
      throw Error(ErrorCode::no_memory,
                  std::string("mapping staging memory: ") + std::strerror(errno));
    CudaFailure failure{};
    handle_ = table_.open(device_->number(), setup.data(), setup.size(), staging_, size, &failure);
    if (handle_ == nullptr) {
      ::munmap(staging_, size_);
      throw error_of(failure);
    }
  }
  ~Decoder() {
    if (this_process() == process_) table_.close(handle_);
    ::munmap(staging_, size_);
  }
  Decoder(const Decoder&) = delete;

  void* handle() const { return handle_; }

 private:
  const CudaDecoderTable& table_;
  const std::shared_ptr<Device> device_;
  const pid_t process_;
  const std::uint64_t size_;
  void* staging_ = nullptr;
  void* handle_ = nullptr;
};

class Decoders::Memory final : public DeviceMemory {
 public:
  Memory(const CudaDecoderTable& table, std::shared_ptr<Decoder> decoder)
      : decoder_(std::move(decoder)) {
    data_ = static_cast<std::byte*>(table.slots(decoder_->handle(), &size_));
  }
  std::byte* data() const override { return data_; }
  std::uint64_t size() const override { return size_; }

 private:
  const std::shared_ptr<Decoder> decoder_;
  std::byte* data_;
  std::uint64_t size_ = 0;
};

class Decoders::Series {
 public:
  /// Takes the socket out of `setup`, the message's descriptors.
  Series(Decoders& owner, const SetupMessage& message, std::vector<Descriptor>& setup)
      : owner_(owner),
        table_(owner.table_),
        decoder_(std::make_shared<Decoder>(table_, owner.device_,
                                           bytes_of_file(setup[0].get(), message.setup_size),
                                           setup[1].get(), message.staging_size)),
        memory_(std::make_shared<Memory>(table_, decoder_)),
        socket_(setup[2].release()) {}
  /// Call after memory() can find it: a batch may arrive at once.
  void begin() {
    starter_ = std::thread([this] { start(); });
    finisher_ = std::thread([this] { finish(); });
  }
  ~Series() {
    if (this_process() != owner_.process_) {  // the threads are the parent's
      for (std::thread* thread : {&starter_, &finisher_})
        if (thread->joinable()) thread->detach();
      return;
    }
    send_end(socket_, ErrorCode::interrupted);
    end();
    for (std::thread* thread : {&starter_, &finisher_})
      if (thread->joinable()) thread->join();
    ::close(socket_);
  }

  const std::shared_ptr<const DeviceMemory>& memory() const { return memory_; }

 private:
  void fail(const Error& error) {
    owner_.failed(error.what());
    send_end(socket_, error.code());
    end();
  }
  /// Starts nothing more and waits for running programs.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      changed_.notify_all();
    }
    ::shutdown(socket_, SHUT_RDWR);
    table_.stop(decoder_->handle());
  }

  void start() {
    for (std::uint64_t number = 1;; ++number) {
      try {
        ReceivedMessage received;
        if (!receive_message(socket_, sizeof(ProgramMessage), received)) return end();
        const auto message = read_as<ProgramMessage>(received.bytes, MessageType::program);
        if (received.descriptors.size() != 1 || message.number != number)
          throw Error(ErrorCode::corrupt, "programs came in another order");
        const std::vector<std::byte> bytes =
            bytes_of_file(received.descriptors[0].get(), message.size);
        CudaFailure failure{};
        if (table_.start(decoder_->handle(), bytes.data(), bytes.size(), &failure) != 0) {
          const std::lock_guard lock(mutex_);
          if (!ending_) throw error_of(failure);
          return;
        }
      } catch (...) {
        return fail(batchfs::error_of(std::current_exception()));
      }
      const std::lock_guard lock(mutex_);
      started_.push_back(number);
      changed_.notify_all();
    }
  }

  void finish() {
    for (;;) {
      std::uint64_t number = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return ending_ || !started_.empty(); });
        if (started_.empty()) return;
        number = started_.front();
        started_.pop_front();
      }
      struct {
        EndedMessage message;
        std::uint32_t refused[kMaxRefused];
      } out{};
      CudaFailure failure{};
      const std::int64_t count =
          table_.finish(decoder_->handle(), number, out.refused, kMaxRefused, &failure);
      if (count < 0) return fail(error_of(failure));
      const bool all = count > kMaxRefused;
      out.message.number = number;
      out.message.count = all ? kAllRefused : static_cast<std::uint32_t>(count);
      const std::size_t size =
          sizeof out.message + (all ? 0 : static_cast<std::size_t>(count) * sizeof(std::uint32_t));
      out.message.header = {static_cast<std::uint32_t>(size), MessageType::ended, kVersion};
      // The starting thread notices the end; running programs are waited for in any case.
      send_message(socket_, {reinterpret_cast<const std::byte*>(&out), size});
    }
  }

  Decoders& owner_;
  const CudaDecoderTable& table_;
  const std::shared_ptr<Decoder> decoder_;
  const std::shared_ptr<const DeviceMemory> memory_;
  const int socket_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<std::uint64_t> started_;
  bool ending_ = false;
  std::thread starter_, finisher_;
};

Decoders::Decoders(const CudaDecoderTable& table, int channel, std::shared_ptr<Device> device)
    : table_(table),
      channel_(channel),
      device_(std::move(device)),
      process_(this_process()),
      thread_([this] { receive(); }) {}

Decoders::~Decoders() {
  if (this_process() != process_) {
    thread_.detach();
    for (auto& [id, series] : series_) series.release();  // their threads are the parent's
    ::close(channel_);
    return;
  }
  ::shutdown(channel_, SHUT_RDWR);
  thread_.join();
  series_.clear();
  ::close(channel_);
}

void Decoders::failed(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (why_failed_.empty()) why_failed_ = why;
}

std::string Decoders::why_failed() const {
  const std::lock_guard lock(mutex_);
  return why_failed_;
}

std::shared_ptr<const DeviceMemory> Decoders::memory(std::uint64_t id) {
  std::vector<std::unique_ptr<Series>> before;  // their end waits, without the lock
  const std::lock_guard lock(mutex_);
  while (!series_.empty() && series_.begin()->first < id)
    before.push_back(std::move(series_.extract(series_.begin()).mapped()));
  const auto it = series_.find(id);
  return it != series_.end() ? it->second->memory() : nullptr;
}

void Decoders::receive() {
  for (;;) {
    ReceivedMessage received;
    if (!receive_message(channel_, sizeof(SetupMessage), received)) return;
    try {
      const auto message = read_as<SetupMessage>(received.bytes, MessageType::setup);
      if (received.descriptors.size() != 3)
        throw Error(ErrorCode::corrupt, "a setup came without its memory");
      auto series = std::make_unique<Series>(*this, message, received.descriptors);
      const std::lock_guard lock(mutex_);
      const auto it = series_.insert_or_assign(message.id, std::move(series)).first;
      try {
        it->second->begin();
      } catch (...) {
        series_.erase(it);
        throw;
      }
    } catch (...) {
      const Error error = batchfs::error_of(std::current_exception());
      failed(error.what());
      // The socket of its programs ends with the message.
      if (received.descriptors.size() == 3 && received.descriptors[2].get() >= 0)
        send_end(received.descriptors[2].get(), error.code());
    }
  }
}

}  // namespace batchfs::reader
