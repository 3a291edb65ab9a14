#include "fs/opens.h"

#include "engine/base/error.h"

namespace batchfs {

void Opens::start(RequestToken token, Ino ino, bool passthrough) {
  try {
    if (const auto opening = open_files_.open_again(ino)) return answer(token, &*opening, 0);
  } catch (...) {
    return answer(token, nullptr, to_errno(error_of(std::current_exception()).code()));
  }
  const WaiterId waiter = files_.open(
      ino,
      [this, token, ino, passthrough](std::shared_ptr<OpenFile> file, std::exception_ptr error) {
        const Answer answer = requests_.take(token);
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
  // The engine answers a cancelled wait.
  requests_.start(token, [this, waiter] { files_.cancel(waiter); });
}

void Opens::answer(RequestToken token, const OpenTable::Opening* opening, int error) {
  if (const Answer answer = requests_.take(token)) answer(opening, error);
}

}  // namespace batchfs
