#include "fs/opens.h"

#include <utility>

#include "engine/base/error.h"

namespace batchfs {

Opens::Token Opens::begin(Answer answer) {
  const std::lock_guard lock(mutex_);
  const Token token = ++last_;
  opens_[token].answer = std::move(answer);
  return token;
}

void Opens::start(Token token, Ino ino, bool passthrough) {
  try {
    if (const auto opening = open_files_.open_again(ino)) {
      take(token)(&*opening, 0);
      return;
    }
  } catch (...) {
    return take(token)(nullptr, to_errno(error_of(std::current_exception()).code()));
  }
  const Engine::WaiterId waiter = files_.open(
      ino, [this, token, ino, passthrough](std::shared_ptr<OpenFile> file, std::exception_ptr error) {
        const Answer answer = take(token);
        if (!answer) return;
        if (error) return answer(nullptr, to_errno(error_of(error).code()));
        OpenTable::Opening opening;
        try {
          opening = open_files_.open(ino, std::move(file), passthrough);
        } catch (...) {
          return answer(nullptr, to_errno(error_of(std::current_exception()).code()));
        }
        answer(&opening, 0);
      });
  bool cancel = false;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = opens_.find(token); it != opens_.end()) {
      it->second.waiter = waiter;
      cancel = it->second.interrupted;
    }
  }
  if (cancel) files_.cancel(waiter);
}

void Opens::interrupt(Token token) {
  Engine::WaiterId waiter = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto it = opens_.find(token);
    if (it == opens_.end()) return;
    it->second.interrupted = true;
    waiter = it->second.waiter;
  }
  if (waiter != 0) files_.cancel(waiter);
}

/// Null when it was answered.
Opens::Answer Opens::take(Token token) {
  const std::lock_guard lock(mutex_);
  const auto it = opens_.find(token);
  if (it == opens_.end()) return nullptr;
  Answer answer = std::move(it->second.answer);
  opens_.erase(it);
  return answer;
}

}  // namespace batchfs
