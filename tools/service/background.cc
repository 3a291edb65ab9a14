#include "tools/service/background.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "engine/base/system_error.h"
#include "tools/service/inherited_descriptors.h"
#include "tools/service/stored_descriptors.h"

namespace batchfs {

namespace {

[[noreturn]] void be_daemon(StartReport& report,
                            const std::function<void(StartReport&)>& run) noexcept {
  try {
    run(report);
    ::_exit(0);
  } catch (...) {
    report.fail(explain(std::current_exception()));
  }
  ::_exit(1);
}

}  // namespace

void run_in_background(const std::function<void(StartReport&)>& run, std::vector<int> kept) {
  Descriptor null(opened(::open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null"));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorCode::io, describe_system_error(errno), "pipe");
  Descriptor read_end(ends[0]), write_end(ends[1]);
  const pid_t command = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0)
    throw Error(ErrorCode::io,
                errno == EAGAIN ? describe_thread_limit() : describe_system_error(errno), "fork");
  if (pid == 0) {
    read_end = Descriptor();
    const std::vector<int> stored = StoredDescriptors::hand_on(command);
    kept.insert(kept.end(), stored.begin(), stored.end());
    kept.insert(kept.end(), {write_end.get(), null.get()});
    close_inherited_descriptors(std::move(kept));
    StartReport report(std::move(write_end), std::move(null));
    be_daemon(report, run);
  }
  write_end = Descriptor();
  StartReport::wait(std::move(read_end));
}

}  // namespace batchfs
