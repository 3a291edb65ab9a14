#pragma once
// One reader's connection: what it may send, what it gets, what it holds. Runs in the server's
// thread only and never waits for the reader.

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/error.h"
#include "gpu/handoff/batch_message.h"
#include "gpu/handoff/delivery.h"
#include "gpu/handoff/outbox.h"
#include "gpu/handoff/process_share.h"
#include "gpu/handoff/protocol.h"
#include "gpu/handoff/shared_view.h"
#include "gpu/handoff/state_teller.h"

namespace batchfs::handoff {

/// Reads the store again. Calls the callback once, from any thread, with the changes as JSON, or
/// with the error.
using Refreshed = std::function<void(std::string, std::exception_ptr)>;
using Refresh = std::function<void(bool force, Refreshed)>;

/// State shared by all connections. Used in the server's thread only.
struct ServerContext {
  SharedViews views;                  // for new readers
  std::vector<Delivery*> deliveries;  // in order of preference
  std::vector<UnsupportedGpu> unsupported_gpus;
  std::uint64_t held = 0;  // bytes of batches that readers hold or wait for
  std::uint64_t leases = 0;
  std::uint64_t delivered = 0;    // batches, ever
  StateTeller* teller = nullptr;  // null: State is refused
  Refresh refresh;                // empty: the store is not read again
  Reserve reserve;                // for views and batches; empty: nothing is reserved
};

/// A batch that a delivery finished, or a text of the state, on its way to the server's thread.
struct Completion {
  std::uint64_t connection = 0;
  std::uint64_t token = 0;  // 0: of a State
  std::shared_ptr<const DeliveredBatch> delivered;
  std::exception_ptr error;
  std::shared_ptr<const MemoryFile> text{};
  std::optional<std::string> refreshed{};  // instead of a batch: the changes
};
/// Takes completions from any thread. May outlive the server; it then drops them.
using Complete = std::function<void(Completion)>;

class Connection {
 public:
  /// Owns `socket`. `process`: the reader's process, shared with its other connections.
  Connection(std::uint64_t id, int socket, ServerContext& context,
             std::shared_ptr<ProcessShare> process, Complete complete);
  /// Cancels its request and returns the batches it holds.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_; }
  bool greeted() const { return view_ != nullptr; }
  /// Hello or Refresh was received.
  bool has_purpose() const { return greeted() || refreshing_; }

  /// Both return false when the connection is over.
  bool readable();
  bool completed(Completion completion);
  bool writable() { return outbox_.flush(); }

  /// Messages wait for the reader to take earlier ones.
  bool blocked() const { return !outbox_.empty(); }
  /// The reader takes no messages; it is not listened to until it does.
  bool deaf() const { return outbox_.full(); }
  /// Too many descriptors are in flight on this machine: call writable() again soon.
  bool short_of_descriptors() const { return outbox_.short_of_descriptors(); }

  /// Sends the reason and ends. `flush` has been tried once when this returns.
  void refuse(const Error& error);

 private:
  struct Lease {
    std::shared_ptr<const DeliveredBatch> delivered;
    std::uint64_t bytes;
    std::uint64_t series;  // the stream it belongs to, 0 for none
    bool in_host;          // its bytes count in process_
    std::shared_ptr<const MemoryFile> windows{};
    bool in_slot() const { return series != 0 && delivered != nullptr && !in_host; }
  };
  /// A batch that was requested and is not sent yet.
  struct Asked {
    std::uint64_t request = 0;  // of a Get, 0 for the stream
    std::int64_t epoch = 0, batch = 0;
    std::uint64_t bytes = 0;
    std::uint64_t opened = 0;  // argument of cancel()
    bool taken = false;        // its bytes are held
    bool done = false;
    std::shared_ptr<const DeliveredBatch> delivered;
    std::exception_ptr error;
  };
  struct Stream {
    std::uint64_t id = 0;      // the reader's
    std::uint64_t series = 0;  // ours: ids may repeat
    std::int64_t epoch = 0, first = 0, step = 1, count = 0;
    std::int64_t next = 0;            // to be opened
    std::deque<std::uint64_t> asked;  // tokens, in order
    std::uint32_t depth = 1, unreleased = 0;
    std::size_t earlier = 0;  // slots of GPU memory that hold batches of earlier streams
    bool wanted = false;      // the reader waits
    bool ended = true;
  };

  bool handle(std::span<const std::byte> message);
  void hello(const HelloMessage& message);
  void refresh(bool force);
  void start(const StartMessage& message);
  void get(const GetMessage& message);
  void release(std::span<const std::byte> message);
  void want(const WantMessage& message);
  void state(const StateMessage& message);
  void send_state(const Completion& completion);

  void pump();
  bool may_go_on(const Asked& asked) const;
  BatchRequest request_of(const Asked& asked, std::int64_t rank, std::int64_t world) const {
    return {view_->view, nullptr, asked.epoch, asked.batch / world, rank, world};
  }
  std::uint64_t ask(Asked asked, std::int64_t rank, std::int64_t world);
  bool fits(std::uint64_t bytes) const;
  Error no_room() const;
  void take(std::uint64_t bytes);
  void give_back(const Asked& asked);
  void give_back(std::uint64_t bytes, bool in_host);
  void end_stream();
  void send(Asked asked);
  void send_failed(const Asked& asked, const Error& error);

  const std::uint64_t id_;
  const int socket_;
  ServerContext& context_;
  const std::shared_ptr<ProcessShare> process_;
  const Complete complete_;

  std::shared_ptr<const SharedView> view_;
  std::shared_ptr<const ViewDescription> description_;  // for other readers, too
  bool refreshing_ = false;                             // waits for the store to be read again
  // if it has its own; destroyed after the batches that came from it
  std::shared_ptr<Delivery> session_;
  Delivery* delivery_ = nullptr;
  std::int64_t rank_ = 0, world_ = 1;
  std::uint16_t version_ = kVersion;  // that both sides use
  Stream stream_;
  std::unordered_map<std::uint64_t, Asked> asked_;  // by token
  std::unordered_map<std::uint64_t, Lease> leases_;
  AttachedMemory attached_;
  std::uint64_t last_token_ = 0, last_lease_ = 0, last_series_ = 0;
  std::uint64_t held_ = 0;     // bytes, of asked_ and leases_
  std::uint64_t in_host_ = 0;  // of these, those that count in process_
  std::size_t batches_ = 0;    // that count in process_
  std::size_t gets_ = 0;       // of asked_
  std::optional<StateText> state_asked_;
  Outbox outbox_;
};

}  // namespace batchfs::handoff
