#pragma once
// Measures how long a daemon has given its supervisor no sign of life.
//
// Only time in which the supervisor itself ran counts. A machine that was suspended, a container
// that was frozen, and a supervisor that was stopped or that gets no processor time all look to the
// clock as a daemon that hangs: the daemon had no time to answer, either.

#include <chrono>
#include <optional>

namespace batchfs {

class Silence {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  /// `longest_step`: the supervisor checks at least this often while it runs; time beyond that does
  /// not count.
  explicit Silence(Duration longest_step) : longest_step_(longest_step) {}

  /// A sign of life: the silence is over.
  void heard() { length_ = Duration::zero(); }
  /// To be called again and again. `counts`: the daemon should have answered since the last call.
  void look(Time now, bool counts);

  Duration length() const { return length_; }

 private:
  const Duration longest_step_;
  std::optional<Time> last_;
  Duration length_{0};
};

}  // namespace batchfs
