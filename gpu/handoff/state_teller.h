#pragma once
// Texts about a server's state, made in a thread of their own: a trace takes tens of milliseconds,
// and no reader may wait for it.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "engine/pipeline/memory_file.h"
#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {

/// Thread-safe.
class StateTeller {
 public:
  using Text = std::function<std::string(StateText)>;
  /// Called once, in this thread, with the text or an error.
  using Done = std::function<void(std::shared_ptr<const MemoryFile>, std::exception_ptr)>;

  /// The thread starts with the first question.
  explicit StateTeller(Text text) : text_(std::move(text)) {}
  /// Waits for the text that is being made; later questions are dropped.
  ~StateTeller();
  StateTeller(const StateTeller&) = delete;
  StateTeller& operator=(const StateTeller&) = delete;

  /// Texts longer than kMaxStateText end as Error{not_supported}. Throws no_memory where too many
  /// questions wait.
  void ask(StateText what, Done done);

 private:
  struct Question {
    StateText what;
    Done done;
  };
  void run();

  const Text text_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable asked_;
  std::deque<Question> questions_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace batchfs::handoff
