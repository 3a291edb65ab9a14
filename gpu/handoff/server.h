#pragma once
// The hand-off's server: readers connect and get batches in memory, see protocol.h.
//
//   HostDelivery host(engine);
//   HandoffServer server({.views = views, .deliveries = {&host}},
//                        Listener::in_runtime_directory(), log);
//
// One thread, which waits only for sockets: batches come from the deliveries by callback, and a
// reader that does not take its messages is left with a full socket. A reader is the user that this
// process runs as, or root. Its death, however it comes, is noticed as the end of its connection,
// or, if a child of its holds the connection open, by its process descriptor; its leases are
// returned then. No process gets all of the memory, descriptors and connections, with however many
// connections: see process_share.h.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/log.h"
#include "engine/pipeline/memory_file.h"
#include "gpu/handoff/connection.h"
#include "gpu/handoff/listener.h"

namespace batchfs::handoff {

class HandoffServer {
 public:
  struct Options {
    std::vector<std::shared_ptr<const View>> views;
    /// In order of preference. They outlive the server; nothing else uses them.
    std::vector<Delivery*> deliveries;
    /// Reported to a reader that asks for mode server on one of them.
    std::vector<UnsupportedGpu> unsupported_gpus{};
    Refresh refresh{};                 // handles Refresh; called in the server's thread
    Reserve reserve{};                 // for descriptions of views; called in the server's thread
    std::shared_ptr<const void> held;  // lives as long as readers use these views
    ReadingRecord reading{};           // of the views
    std::size_t most_readers = 512;
    std::chrono::milliseconds greeting_time{10'000};  // time for a reader to send Hello
    /// Makes the texts for State, in a thread of its own. Empty: State is refused.
    std::function<std::string(const HandoffServer&, StateText)> state_text{};
    /// Called once, from the server's thread, when the last reader leaves, before its connection
    /// ends, or when none has sent Hello `first_reader_time` after the start. Connections are not
    /// accepted any more then. Empty: never.
    std::function<void()> on_unused;
    std::chrono::milliseconds first_reader_time{10'000};
  };

  HandoffServer(Options options, Listener listener, Log& log);
  /// Ends every connection. Batches that readers hold stay unchanged; batches that deliveries
  /// finish afterwards are dropped.
  ~HandoffServer();
  HandoffServer(const HandoffServer&) = delete;

  /// Ends every connection and removes the socket, like the destructor, and does not wait for a
  /// text that is being made. Call from the thread that destroys it.
  void end();
  HandoffServer& operator=(const HandoffServer&) = delete;

  /// Readers that connect from now on get these views. `held` and `reading` as in Options.
  void set_views(const std::vector<std::shared_ptr<const View>>& views,
                 const std::shared_ptr<const void>& held, const ReadingRecord& reading = {});

  /// The path that readers connect to.
  const std::string& path() const { return listener_.path(); }

  struct Statistics {
    std::uint64_t readers = 0, leases = 0,
                  bytes = 0;      // now: connected, held, bytes of batches held or in work
    std::uint64_t delivered = 0;  // batches, since the start
  };
  Statistics statistics() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Reader {
    std::unique_ptr<Connection> connection;
    int process = -1;            // its process descriptor
    Clock::time_point deadline;  // for its Hello
    std::uint32_t events = 0;    // events that the socket is watched for
    ~Reader();
  };
  /// Completions of deliveries, for the server's thread. Outlives the server.
  struct Inbox;

  void run();
  void accept_readers();
  void accept_reader(int socket);
  std::shared_ptr<ProcessShare> share_of(pid_t process);
  void drain_inbox();
  void settle(std::uint64_t id, bool goes_on);
  bool is_unused() const;
  void end_unused();
  int timeout() const;
  void publish();

  Options options_;
  Listener listener_;
  Log& log_;
  ServerContext context_;
  std::shared_ptr<Inbox> inbox_;
  std::unique_ptr<StateTeller> teller_;
  int events_ = -1;  // epoll
  const std::size_t most_batches_ = most_batches_of_process();
  std::map<pid_t, std::weak_ptr<ProcessShare>> processes_;
  std::map<std::uint64_t, Reader> readers_;
  std::uint64_t last_reader_ = 0;
  std::set<std::uint64_t> greeting_, short_of_descriptors_;  // readers with a deadline
  Clock::time_point accept_again_{};                         // when descriptors had run out
  bool ended_unused_ = false;
  bool was_read_ = false;  // a reader has sent Hello
  Clock::time_point first_reader_deadline_{};
  bool accepting_ = true;
  std::atomic<std::uint64_t> shown_readers_{0}, shown_leases_{0}, shown_bytes_{0},
      shown_delivered_{0};
  std::thread thread_;
};

}  // namespace batchfs::handoff
