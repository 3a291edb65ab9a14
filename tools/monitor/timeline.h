#pragma once
// Evaluates a mount's trace.json: when each reader asked for a batch, how long it waited, how long
// it then used it, and the mount's work meanwhile.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/json.h"

namespace batchfs {

struct Timeline {
  struct Span {
    double begin = 0, end = 0;  // seconds since the first of all
  };
  struct Get {
    Span wait;
    double used_until = -1;  // when the reader asked for the next; -1: it has not yet
    std::int64_t epoch = 0, batch = 0;
    std::uint64_t bytes = 0;
    bool failed = false;
  };
  struct Reader {
    std::string view;
    std::int64_t rank = 0, world = 1;
    std::vector<Get> gets;  // in the order of asking
  };
  double seconds = 0;  // from the first thing that was done to the last
  std::vector<Reader> readers;
  std::vector<Span> fetches, decodes, assemblies;
};

/// Throws corrupt if `trace` is not a list of events. Skips unknown events.
Timeline timeline(const Json& trace);

/// How many of `spans` were in progress, on average, in each of `bins` equal parts of `seconds`.
std::vector<double> under_way(const std::vector<Timeline::Span>& spans, double seconds,
                              std::size_t bins);

}  // namespace batchfs
