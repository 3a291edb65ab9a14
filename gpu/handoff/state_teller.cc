#include "gpu/handoff/state_teller.h"

#include <cstring>

#include "engine/base/blocked_signals.h"
#include "engine/base/error.h"

namespace batchfs::handoff {

namespace {

constexpr std::size_t kMaxQuestions = 64;

std::shared_ptr<const MemoryFile> file_of(const std::string& text) {
  if (text.size() > kMaxStateText)
    throw Error(ErrorCode::not_supported, "the text is longer than a socket hands over");
  auto file = std::make_shared<MemoryFile>(
      MemoryFiles(false).create("batchfs-state", std::max<std::size_t>(text.size(), 1)));
  std::memcpy(file->data(), text.data(), text.size());
  file->seal();
  return file;
}

}  // namespace

StateTeller::~StateTeller() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  asked_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StateTeller::ask(StateText what, Done done) {
  const std::lock_guard lock(mutex_);
  if (questions_.size() >= kMaxQuestions)
    throw Error(ErrorCode::no_memory, "too many programs ask for the state at once");
  if (!thread_.joinable()) {
    const BlockedSignals blocked;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::exception&) {
      throw Error(ErrorCode::no_memory, "there is no room for a thread that tells the state");
    }
  }
  questions_.push_back({what, std::move(done)});
  asked_.notify_one();
}

void StateTeller::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    asked_.wait(lock, [this] { return stopping_ || !questions_.empty(); });
    if (stopping_) return;
    const Question question = std::move(questions_.front());
    questions_.pop_front();
    lock.unlock();
    std::shared_ptr<const MemoryFile> file;
    std::exception_ptr error;
    try {
      file = file_of(text_(question.what));
    } catch (...) {
      error = std::current_exception();
    }
    question.done(std::move(file), error);
    lock.lock();
  }
}

}  // namespace batchfs::handoff
