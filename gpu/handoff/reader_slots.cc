#include "gpu/handoff/reader_slots.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/system_error.h"
#include "engine/view/spec.h"
#include "gpu/handoff/messages.h"
#include "gpu/program/program_setup.h"
#include "gpu/stream/batch_stream.h"

namespace batchfs::handoff {

namespace {

/// Staging memory, in programs' worth: as many as the lanes work on, and two that are read
/// meanwhile.
constexpr std::uint64_t kStagedParts = 6;

/// Reading is bound by memory: two threads that share a core take nearly twice the time of one and
/// are hardly faster.
int reading_threads() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency() / 2, 2u, 12u));
}

MemoryFile file_of(std::span<const std::byte> bytes, const char* name) {
  MemoryFile file = MemoryFiles(false).create(name, std::max<std::size_t>(bytes.size(), 1));
  std::memcpy(file.data(), bytes.data(), bytes.size());
  file.seal();
  return file;
}

/// A message would not wait for room.
bool has_room(int socket) {
  pollfd state{socket, POLLOUT, 0};
  return ::poll(&state, 1, 0) == 1;
}

template <class Message>
bool send_struct(int socket, Message message, MessageType type, std::span<const int> descriptors) {
  message.header = {sizeof message, type, kVersion};
  return send_message(socket, std::as_bytes(std::span(&message, 1)), descriptors);
}

class ReaderSlots final : public SlotStream {
 public:
  ReaderSlots(Engine& engine, SocketWatcher& watcher, int channel, std::uint64_t id,
              const BatchRequest& first, std::uint64_t memory, std::uint32_t slots)
      : watcher_(watcher),
        view_(first.view),
        rank_(first.rank),
        world_(first.world),
        epoch_batches_(static_cast<std::uint64_t>(view_->rank_batches(first.rank, first.world))),
        first_(static_cast<std::uint64_t>(first.epoch) * epoch_batches_ +
               static_cast<std::uint64_t>(first.batch)),
        id_(id),
        memory_(memory),
        slots_(slots),
        layout_(gpu::device_layout(*view_, memory, slots,
                                   gpu::largest_part(engine.budget().limit(), kStagedParts))),
        tables_(*view_),
        planner_(engine.executor(), 1),
        sender_(engine.executor(), 1),
        executor_(engine.executor(), reading_threads()) {
    layout_.sizes.constants = tables_.constants().size();
    layout_.sizes.staging = kStagedParts * layout_.part;
    staging_memory_ =
        engine.reserve(engine.memory_files().memory_of(layout_.sizes.staging), gpu::kStagingName);
    staging_ = engine.memory_files().create("batchfs-staging", layout_.sizes.staging);
    staging_.seal();  // for the reader: programs are made of these bytes, and nobody else may
                      // change it
    const gpu::ProgramSetup setup{layout_.sizes,
                                  static_cast<std::uint32_t>(layout_.lanes),
                                  slots,
                                  layout_.slot_bytes,
                                  tables_.conversions(),
                                  tables_.constants()};
    const std::vector<std::byte> bytes = setup.to_bytes();
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      throw Error(ErrorCode::no_memory,
                  std::string("a socket for programs: ") + describe_system_error(errno));
    socket_ = Descriptor(ends[0]);
    const MemoryFile file = file_of(bytes, "batchfs-setup");
    const int descriptors[] = {file.fd(), staging_.fd(), ends[1]};
    const bool sent =
        has_room(channel) &&  // else the reader does not take its Setups
        send_struct(channel, SetupMessage{{}, id, bytes.size(), layout_.sizes.staging},
                    MessageType::setup, descriptors);
    ::close(ends[1]);
    if (!sent) throw Error(ErrorCode::interrupted, "the reader is gone");
    for (std::uint32_t slot = 0; slot < slots; ++slot) free_slots_.push_back(slot);
    source_ = std::make_unique<gpu::ProgramSource>(
        view_, tables_,
        [this](std::uint64_t place) -> std::optional<gpu::BatchNumber> {
          if (!exists(place)) return std::nullopt;
          return gpu::BatchNumber{epoch_of(place), number_of(place)};
        },
        gpu::ProgramSource::Options{layout_.sizes, staging_.data(), layout_.part, rank_, world_,
                                    &engine.trace(), &engine.counters(),
                                    [this] {
                                      post_plan();
                                      post_send();
                                    },
                                    gpu::plan_limit(engine), gpu::memory_for_chunks(engine)},
        executor_, counters_);
    watcher_.add(socket_.get(), [this] { return guarded([this] { receive(); }); });
    post_plan();
  }

  ~ReaderSlots() override {
    stop();
    watcher_.remove(socket_.get());
    planner_.stop();
    sender_.stop();
    source_ = nullptr;  // waits for reads into staging
    executor_.stop();
  }

  std::optional<Slot> try_next() override {
    std::unique_lock lock(mutex_);
    if (!exists(next_place_))
      throw Error(ErrorCode::not_found, "there is no batch behind the last epoch's");
    const auto it = entries_.find(next_place_);
    if (it == entries_.end() || !it->second.ended) {
      if (why_broken_.empty()) return std::nullopt;
      throw Error(code_, why_broken_);
    }
    const Entry entry = std::move(it->second);
    entries_.erase(it);
    const std::uint64_t place = next_place_++;
    if (!entry.why_failed.empty()) {
      free_slots_.push_back(entry.slot);
      post_plan();
      throw Error(ErrorCode::not_supported, entry.why_failed);
    }
    lock.unlock();
    Slot slot;
    const std::vector<Dims> shapes = view_->shapes(number_of(place));
    const std::vector<std::uint64_t> offsets = gpu::tensor_offsets(*view_, shapes);
    for (std::size_t t = 0; t < shapes.size(); ++t)
      slot.tensors.push_back({entry.slot * layout_.slot_bytes + offsets[t],
                              static_cast<std::uint64_t>(element_count(shapes[t])) *
                                  view_->tensors()[t].type.itemsize});
    slot.release = [this, freed = entry.slot] {
      const std::lock_guard again(mutex_);
      free_slots_.push_back(freed);
      post_plan();
    };
    return slot;
  }
  void on_change(std::function<void()> changed) override {
    const std::lock_guard lock(mutex_);
    changed_ = std::move(changed);
  }

  void stop() override {
    fail("the stream is ending", ErrorCode::interrupted);
    ::shutdown(socket_.get(), SHUT_RDWR);
  }
  bool broken() const override {
    const std::lock_guard lock(mutex_);
    return !why_broken_.empty();
  }
  std::uint32_t slots() const override { return slots_; }
  MemoryKind kind() const override { return MemoryKind::own; }
  std::uint64_t id() const override { return id_; }
  int fd() const override { return -1; }
  std::uint64_t size() const override { return layout_.sizes.batch; }
  std::uint64_t memory() const override { return memory_; }

 private:
  struct Entry {
    std::uint32_t slot = 0;
    bool ended = false;
    std::string why_failed;
  };

  bool exists(std::uint64_t place) const {
    return epoch_batches_ > 0 &&
           (first_ + place) / epoch_batches_ < static_cast<std::uint64_t>(view_->spec().epochs);
  }
  std::int64_t epoch_of(std::uint64_t place) const {
    return static_cast<std::int64_t>((first_ + place) / epoch_batches_);
  }
  /// Global.
  std::int64_t number_of(std::uint64_t place) const {
    return static_cast<std::int64_t>((first_ + place) % epoch_batches_) * world_ + rank_;
  }

  /// Nothing more comes. ErrorCode::interrupted: the reader has left, or the server ends it.
  void fail(const std::string& why, ErrorCode code) {
    {
      const std::lock_guard lock(mutex_);
      if (why_broken_.empty()) {
        why_broken_ = why;
        code_ = code;
      }
      if (changed_) changed_();
    }
    if (source_) source_->stop();
  }

  /// False when the stream has failed.
  template <class Step>
  bool guarded(Step step) {
    try {
      step();
    } catch (...) {
      const Error error = error_of(std::current_exception());
      fail(error.what(), error.code());
    }
    return !broken();
  }

  void post_plan() {
    planner_.post(kReaderWaits, [this] { guarded([this] { plan(); }); });
  }
  void post_send() {
    sender_.post(kReaderWaits, [this] { guarded([this] { send(); }); });
  }

  /// Plans batches while there are slots for them. One at a time, since planner_ has one thread.
  void plan() {
    while (exists(next_planned_)) {
      std::uint32_t slot = 0;
      {
        const std::lock_guard lock(mutex_);
        if (!why_broken_.empty() || free_slots_.empty()) return;
        slot = free_slots_.front();
      }
      if (!source_->prepare(next_planned_)) return;
      {
        const std::lock_guard lock(mutex_);
        free_slots_.pop_front();
        entries_[next_planned_].slot = slot;
      }
      std::vector<std::uint64_t> tensors =
          gpu::tensor_offsets(*view_, view_->shapes(number_of(next_planned_)));
      tensors.pop_back();
      for (std::uint64_t& offset : tensors) offset += slot * layout_.slot_bytes;
      if (!source_->begin(next_planned_, slot, tensors)) return;
      ++next_planned_;
    }
  }

  /// Sends programs that are complete. One at a time, since sender_ has one thread.
  void send() {
    for (;;) {
      if (unsent_ == nullptr) unsent_ = source_->try_next();
      if (unsent_ == nullptr) return;
      // The socket holds programs that the reader has not taken: receive() sends when it reports on
      // them.
      if (!has_room(socket_.get())) return;
      const gpu::Program& program = *unsent_;
      {
        const std::lock_guard lock(mutex_);
        started_.push_back({program.header().number, program.header().chunks});
      }
      const MemoryFile file = file_of(program.bytes(), "batchfs-program");
      const int descriptors[] = {file.fd()};
      if (!send_struct(socket_.get(),
                       ProgramMessage{{}, program.header().number, program.bytes().size()},
                       MessageType::program, descriptors)) {
        ::shutdown(socket_.get(), SHUT_RDWR);  // receive() reads what the reader said last
        return;
      }
      unsent_ = nullptr;
    }
  }

  /// Takes the reader's report on a program. In the watcher's thread.
  void receive() {
    constexpr std::size_t kMaxMessage = sizeof(EndedMessage) + kMaxRefused * sizeof(std::uint32_t);
    ReceivedMessage received;
    if (!receive_message(socket_.get(), kMaxMessage, received))
      return fail("the reader's decoder has ended without a word", ErrorCode::io);
    const Ended ended = read(received.bytes);
    const auto batch = source_->ended(ended.number, ended.statuses);
    post_send();
    if (!batch) return;
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[batch->place];
    entry.ended = true;
    entry.why_failed = batch->why_failed;
    if (changed_) changed_();
  }

  struct Ended {
    std::uint64_t number;
    std::vector<std::uint32_t> statuses;
  };
  /// The reader's report on the oldest program in flight. Throws corrupt, io or no_memory if its
  /// decoder failed, and interrupted if it leaves.
  Ended read(std::span<const std::byte> bytes) {
    const auto require = [](bool good) {
      if (!good)
        throw Error(ErrorCode::corrupt, "protocol error: the reader sent a malformed Ended");
    };
    EndedMessage message;
    require(bytes.size() >= sizeof message);
    std::memcpy(&message, bytes.data(), sizeof message);
    require(message.header.type == MessageType::ended);
    if (message.number == 0) {
      if (message.code == static_cast<std::uint32_t>(ErrorCode::interrupted))
        throw Error(ErrorCode::interrupted, "the reader has left");
      const bool is_memory = message.code == static_cast<std::uint32_t>(ErrorCode::no_memory);
      throw Error(is_memory ? ErrorCode::no_memory : ErrorCode::io,
                  is_memory ? "the reader's GPU has too little free memory for its decoder; allow "
                              "it less (device_memory)"
                            : "the reader's decoder has failed; the reader knows why (why_copied)");
    }
    Ended ended{message.number, {}};
    {
      const std::lock_guard lock(mutex_);
      require(!started_.empty() && started_.front().first == message.number);
      ended.statuses.assign(started_.front().second, message.count == kAllRefused
                                                         ? ~std::uint32_t{gpu::kDecoded}
                                                         : gpu::kDecoded);
      started_.pop_front();
    }
    if (message.count == kAllRefused) return ended;
    require(message.count <= kMaxRefused &&
            bytes.size() == sizeof message + message.count * sizeof(std::uint32_t));
    for (std::uint32_t i = 0; i < message.count; ++i) {
      std::uint32_t chunk;
      std::memcpy(&chunk, bytes.data() + sizeof message + i * sizeof chunk, sizeof chunk);
      require(chunk < ended.statuses.size());
      ended.statuses[chunk] = ~std::uint32_t{gpu::kDecoded};
    }
    return ended;
  }

  SocketWatcher& watcher_;
  const std::shared_ptr<const View> view_;
  const std::int64_t rank_, world_;
  const std::uint64_t epoch_batches_, first_;
  const std::uint64_t id_, memory_;
  const std::uint32_t slots_;
  gpu::DeviceLayout layout_;
  const gpu::AssemblyTables tables_;
  gpu::ProgramCounters counters_;
  Budget::Reservation staging_memory_;
  MemoryFile staging_;
  Descriptor socket_;

  mutable std::mutex mutex_;       // guards what follows
  std::function<void()> changed_;  // called with it held
  std::deque<std::uint32_t> free_slots_;
  std::map<std::uint64_t, Entry> entries_;  // planned and not given out, by place
  /// Programs under way: number, chunks.
  std::deque<std::pair<std::uint64_t, std::uint64_t>> started_;
  std::uint64_t next_place_ = 0;
  std::string why_broken_;
  ErrorCode code_ = ErrorCode::interrupted;  // with why_broken_

  std::uint64_t next_planned_ = 0;              // planner_'s
  std::shared_ptr<const gpu::Program> unsent_;  // sender_'s
  Executor planner_, sender_, executor_;        // the last reads for source_
  std::unique_ptr<gpu::ProgramSource> source_;  // last: its work uses the others
};

}  // namespace

std::unique_ptr<SlotStream> reader_slots(Engine& engine, SocketWatcher& watcher, int channel,
                                         std::uint64_t id, const BatchRequest& first,
                                         std::uint64_t memory) {
  return std::make_unique<ReaderSlots>(
      engine, watcher, channel, id, first, memory,
      gpu::slots_within(*first.view, memory, {kMaxSlots, kUsualSlots, kMinSlots}));
}

}  // namespace batchfs::handoff
