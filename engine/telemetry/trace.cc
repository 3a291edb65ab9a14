#include "engine/telemetry/trace.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include <sched.h>

namespace batchfs {

namespace {

constexpr std::size_t kMaxProcessors = 16;  // more share rings: a ring of a few events is useless
constexpr std::size_t kMaxNames = 4096;
constexpr std::size_t kMaxName = 255;

bool is_of_batch(Trace::Kind kind) { return kind >= Trace::Kind::assemble; }

}  // namespace

static_assert(sizeof(Trace::Event) <= 144);

struct alignas(64) Trace::Ring {
  std::mutex mutex;  // hardly ever waited for: it is this processor's
  std::unique_ptr<Event[]> events;
  std::size_t capacity = 0;
  std::uint64_t added = 0;
};

Trace::Trace(std::size_t bytes)
    : processors_(std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMaxProcessors)),
      rings_(new Ring[kGroups * processors_]),
      names_{""},
      numbers_{{"", 0}} {
  for (std::size_t i = 0; i < kGroups * processors_; ++i) {
    const std::size_t share = i < processors_ ? bytes / 4 * 3 : bytes / 4;
    rings_[i].capacity = std::max<std::size_t>(1, share / processors_ / sizeof(Event));
  }
}

Trace::~Trace() = default;

std::uint64_t Trace::now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

std::uint32_t Trace::name(std::string_view name) {
  const std::lock_guard lock(names_mutex_);
  std::string key(name.substr(0, kMaxName));
  if (const auto it = numbers_.find(key); it != numbers_.end()) return it->second;
  if (names_.size() == kMaxNames) return 0;
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.push_back(key);
  numbers_.emplace(std::move(key), number);
  return number;
}

void Trace::add(Event event, std::string_view array, const Dims& chunk) {
  // No strings: this is where the nanoseconds are.
  char index[sizeof event.chunk_text];
  char* end = index;
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    if (index + sizeof index - end < 21) break;  // a dot and the longest number
    if (d > 0) *end++ = '.';
    end = std::to_chars(end, index + sizeof index, chunk[d]).ptr;
  }
  if (chunk.empty()) *end++ = '0';
  const auto index_size = static_cast<std::size_t>(end - index);
  const std::size_t room = sizeof event.chunk_text - index_size;
  char* to = event.chunk_text;
  if (!array.empty() && room > 1) {
    const std::string_view shown = array.substr(array.size() - std::min(array.size(), room - 1));
    to = std::copy(shown.begin(), shown.end(), to);
    *to++ = '/';
  }
  to = std::copy(index, end, to);
  event.chunk_size = static_cast<std::uint8_t>(to - event.chunk_text);
  add(event);
}

void Trace::add(Event event) {
  event.duration = now() - event.begin;
  const int processor = ::sched_getcpu();
  const std::size_t mine = processor < 0 ? 0 : static_cast<std::size_t>(processor) % processors_;
  Ring& ring = rings_[(is_of_batch(event.kind) ? processors_ : 0) + mine];
  const std::lock_guard lock(ring.mutex);
  // Not value-initialised: pages that nothing was written to take no memory.
  if (ring.events == nullptr) ring.events.reset(new Event[ring.capacity]);
  ring.events[ring.added++ % ring.capacity] = event;
}

Trace::Snapshot Trace::last(std::uint64_t nanoseconds) const {
  Snapshot snapshot;
  const std::uint64_t time = now();
  const std::uint64_t asked = time > nanoseconds ? time - nanoseconds : 0;
  for (std::size_t group = 0; group < kGroups; ++group) {
    const std::size_t first = snapshot.events.size();
    std::uint64_t known = asked;  // from now on no ring of the group has overwritten anything
    for (std::size_t i = group * processors_; i < (group + 1) * processors_; ++i) {
      Ring& ring = rings_[i];
      const std::lock_guard lock(ring.mutex);
      if (ring.added == 0) continue;
      const std::size_t held = std::min<std::uint64_t>(ring.added, ring.capacity);
      const Event* events = ring.events.get();
      if (held < ring.added) {
        const Event& oldest = events[ring.added % ring.capacity];
        known = std::max(known, oldest.begin + oldest.duration);
      }
      snapshot.events.insert(snapshot.events.end(), events, events + held);
    }
    const auto too_old = [known](const Event& event) {
      return event.begin + event.duration < known;
    };
    snapshot.events.erase(
        std::remove_if(snapshot.events.begin() + static_cast<std::ptrdiff_t>(first),
                       snapshot.events.end(), too_old),
        snapshot.events.end());
  }
  std::sort(snapshot.events.begin(), snapshot.events.end(),
            [](const Event& a, const Event& b) { return a.begin < b.begin; });
  const std::lock_guard lock(names_mutex_);
  snapshot.names = names_;
  return snapshot;
}

}  // namespace batchfs
