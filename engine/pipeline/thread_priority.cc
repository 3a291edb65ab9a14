#include "engine/pipeline/thread_priority.h"

#include <sys/resource.h>
#include <unistd.h>

namespace batchfs {

void lower_thread_priority() {
  constexpr int kNicer = 5;
  // In Linux, 0 is the calling thread. It may have inherited a lower priority from the one that
  // started it. Lower priority is always allowed.
  const int of_main = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::getpid()));
  ::setpriority(PRIO_PROCESS, 0, of_main + kNicer);
}

}  // namespace batchfs
