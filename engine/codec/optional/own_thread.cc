#include "engine/codec/optional/own_thread.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include <unistd.h>

#include "engine/base/error.h"

namespace batchfs {

class OwnThread::Worker {
 public:
  bool belongs_here() const { return pid_ == ::getpid(); }

  void run(const std::function<void()>& task) {
    const std::lock_guard turn(turn_);
    std::exception_ptr thrown;
    const std::function<void()> guarded = [&] {
      try {
        task();
      } catch (...) {
        thrown = std::current_exception();
      }
    };
    {
      std::unique_lock lock(mutex_);
      task_ = &guarded;
      changed_.notify_all();
      changed_.wait(lock, [this] { return task_ == nullptr; });
    }
    if (thrown) std::rethrow_exception(thrown);
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return task_ != nullptr; });
      lock.unlock();
      (*task_)();
      lock.lock();
      task_ = nullptr;
      changed_.notify_all();
    }
  }

 private:
  const pid_t pid_ = ::getpid();
  std::mutex turn_;   // Lock order: before mutex_.
  std::mutex mutex_;  // Guards task_.
  std::condition_variable changed_;
  const std::function<void()>* task_ = nullptr;
};

std::shared_ptr<OwnThread::Worker> OwnThread::worker() {
  static std::mutex starting;
  const std::lock_guard lock(starting);
  if (worker_ == nullptr || !worker_->belongs_here()) {
    // That of the process before a fork has a thread waiting in it, which is gone: it stays as it
    // is.
    if (worker_ != nullptr) new std::shared_ptr<Worker>(std::move(worker_));
    const auto fresh = std::make_shared<Worker>();
    try {
      std::thread([fresh] { fresh->work(); }).detach();
    } catch (const std::system_error&) {
      throw Error(ErrorCode::no_memory, "no thread can be started to decode with");
    }
    worker_ = fresh;
  }
  return worker_;
}

void OwnThread::run(const std::function<void()>& task) { worker()->run(task); }

}  // namespace batchfs
