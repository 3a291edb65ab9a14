#pragma once
// Counts batches that a reader wanted made on a GPU and that were made on the host, by reason.

#include <array>
#include <cstdint>
#include <string>

#include "gpu/handoff/protocol.h"

namespace batchfs::reader {

class Fallbacks {
 public:
  /// A batch arrived, with this reason from the server. Unknown reasons count as `failed`.
  void add(handoff::Fallback fallback);
  /// "3 of 44 batches were made on the host: 2 because …; 1 because …"; empty when all were made on
  /// the GPU.
  std::string text() const;

 private:
  std::uint64_t batches_ = 0;
  std::array<std::uint64_t, handoff::kFallbacks> counts_{};
};

}  // namespace batchfs::reader
