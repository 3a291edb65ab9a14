#include "tools/service/last_words.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <exception>
#include <new>

#include <unistd.h>

#include "engine/base/error.h"

namespace batchfs {

namespace {

struct Words {
  std::atomic<int> descriptor{-1};  // -1: none
  std::size_t size = 0;
  std::array<char, 512> text{};
};

/// State of the whole process, like its terminate handler.
std::array<Words, 4> words;
std::terminate_handler otherwise = nullptr;
int exit_status = 1;
std::atomic<bool> ending = false;

bool is_out_of_memory() {
  // A noexcept function of the C++ library may not tell what passes through it; only this can.
  if (std::current_exception() == nullptr) return std::uncaught_exceptions() > 0;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const Error& error) {
    return error.code() == ErrorCode::no_memory;
  } catch (...) {
    return false;
  }
}

[[noreturn]] void terminate() {
  if (!is_out_of_memory()) {
    otherwise();
    ::_exit(exit_status);  // unreachable: a terminate handler does not return
  }
  while (ending.exchange(true)) ::pause();  // another thread writes them
  std::signal(SIGPIPE, SIG_IGN);
  for (Words& each : words) {
    const int descriptor = each.descriptor;
    if (descriptor >= 0) {
      // Nothing is left to be done when nobody reads it.
      [[maybe_unused]] const ssize_t n = ::write(descriptor, each.text.data(), each.size);
    }
  }
  ::_exit(exit_status);
}

}  // namespace

void end_with_last_words(int exit_code) {
  exit_status = exit_code;
  otherwise = std::set_terminate(terminate);
}

void set_last_words(int descriptor, std::string_view text) {
  for (Words& each : words)
    if (each.descriptor == descriptor) each.descriptor = -1;
  if (text.empty()) return;
  const auto free = std::find_if(words.begin(), words.end(),
                                 [](const Words& each) { return each.descriptor < 0; });
  if (free == words.end()) return;
  free->size = std::min(text.size(), free->text.size());
  std::copy_n(text.begin(), free->size, free->text.begin());
  free->descriptor = descriptor;
}

}  // namespace batchfs
