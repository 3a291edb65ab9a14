#pragma once
// Conditions that must hold at any time, checked in every build: where it does not, the state of
// the process is wrong, and it ends rather than deliver wrong values. A mount's supervisor starts
// another.

#include <cstdio>
#include <cstdlib>

namespace batchfs {

/// Where it does not hold, writes a line to standard error and aborts. `invariant`: a sentence.
inline void check_invariant(bool holds, const char* invariant) noexcept {
  if (holds) [[likely]]
    return;
  std::fprintf(stderr, "batchfs: internal error: it does not hold that %s\n", invariant);
  std::abort();
}

}  // namespace batchfs
