#include "engine/base/invariant.h"

#include <cstdio>
#include <cstdlib>

namespace batchfs {

void end_broken(const char* invariant) noexcept {
  std::fprintf(stderr, "batchfs: internal error: it does not hold that %s\n", invariant);
  std::abort();
}

}  // namespace batchfs
