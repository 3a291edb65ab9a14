#pragma once
// What must hold at any time, checked in every build: where it does not, the state of the process
// is wrong, and it ends rather than deliver wrong values. A mount's supervisor starts another.

namespace batchfs {

/// Writes a line to standard error and aborts.
[[noreturn]] void end_broken(const char* invariant) noexcept;

/// `invariant`: a sentence about what holds.
inline void check_invariant(bool holds, const char* invariant) noexcept {
  if (!holds) [[unlikely]]
    end_broken(invariant);
}

}  // namespace batchfs
