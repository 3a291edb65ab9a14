#include "tools/cli/silence.h"

#include <algorithm>

namespace batchfs {

void Silence::look(Time now, bool counts) {
  if (counts && last_) length_ += std::clamp(now - *last_, Duration::zero(), longest_step_);
  if (!counts) length_ = Duration::zero();
  last_ = now;
}

}  // namespace batchfs
