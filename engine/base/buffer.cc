#include "engine/base/buffer.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <mutex>
#include <new>
#include <vector>

#include <sys/mman.h>

#include "engine/base/buffer_pool.h"

namespace batchfs {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kPooled = kPoolsBuffers ? 256 << 10 : SIZE_MAX;  // from this size on
constexpr std::size_t kHugePage = 2 << 20;

/// Sizes are rounded up to eighths of a power of two, so that similar chunks share free buffers.
std::size_t size_class(std::size_t size) {
  const std::size_t step = std::bit_floor(size) / 8;
  return (size + step - 1) / step * step;
}

/// A virtual machine may give memory that it has freed back to its host, some seconds later (free
/// page reporting), huge pages only: using one again then means fetching it from
/// the host, small page by small page (0.4 GB/s was measured, and 2.5 GB/s for small pages, which
/// the machine had kept).
bool host_takes_huge_pages() {
  std::ifstream order("/sys/module/page_reporting/parameters/page_reporting_order");
  long long value = -1;
  return order >> value && value >= 0 &&
         value < 64;  // as unsigned -1 where nobody asked for reports
}

/// Memory that starts on a huge page, and consists of such where it can and should.
std::byte* map(std::size_t size, bool huge_pages) {
  const std::size_t slack = huge_pages && size >= kHugePage ? kHugePage : 0;
  void* mapped =
      ::mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(mapped);
  if (slack == 0) return begin;
  const auto past = reinterpret_cast<std::uintptr_t>(begin) % kHugePage;
  const std::size_t front = past == 0 ? 0 : kHugePage - past;
  if (front > 0) ::munmap(begin, front);
  if (slack > front) ::munmap(begin + front + size, slack - front);
  ::madvise(begin + front, size, MADV_HUGEPAGE);
  return begin + front;
}

/// An allocator's state is the process's, like malloc's own.
class Pool {
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kHostTakes{1};  // sooner than the kernel reports it

 public:
  std::byte* take(std::size_t size) {
    {
      const std::lock_guard lock(mutex_);
      // The newest first: its pages are the likeliest to be in the processor's caches.
      for (auto it = free_.rbegin(); it != free_.rend(); ++it) {
        if (it->second != size) continue;
        std::byte* data = it->first;
        free_.erase(std::next(it).base());
        kept_ -= size;
        return data;
      }
    }
    return map(size, !host_takes_ || takes_back(size));
  }

  void give(std::byte* data, std::size_t size) {
    std::unique_lock lock(mutex_);
    free_.emplace_back(data, size);
    kept_ += size;
    drop_surplus(std::move(lock));
  }

  void discard(std::byte* data, std::size_t size) {
    if (host_takes_) {
      const std::lock_guard lock(mutex_);
      unmapped_ += size;
      unmapped_at_ = Clock::now();
    }
    ::munmap(data, size);
  }

  void keep(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    most_ = std::max(bytes, kMinPooled);
    drop_surplus(std::move(lock));
  }

 private:
  /// Unmaps the oldest ones beyond the limit, without the lock.
  void drop_surplus(std::unique_lock<std::mutex> lock) {
    std::vector<std::pair<std::byte*, std::size_t>> surplus;
    for (; kept_ > most_; free_.pop_front()) {
      kept_ -= free_.front().second;
      surplus.push_back(free_.front());
    }
    if (host_takes_ && !surplus.empty()) {
      for (const auto& [old, bytes] : surplus) unmapped_ += bytes;
      unmapped_at_ = Clock::now();
    }
    lock.unlock();
    for (const auto& [old, bytes] : surplus) ::munmap(old, bytes);
  }

  /// Is this much of what was just unmapped still the machine's?
  bool takes_back(std::size_t size) {
    const std::lock_guard lock(mutex_);
    if (Clock::now() - unmapped_at_ > kHostTakes) unmapped_ = 0;
    if (unmapped_ < size) return false;
    unmapped_ -= size;
    return true;
  }

  std::mutex mutex_;
  /// The oldest first; at most most_ / kPooled of them.
  std::deque<std::pair<std::byte*, std::size_t>> free_;
  std::size_t kept_ = 0, most_ = kMinPooled;
  const bool host_takes_ = host_takes_huge_pages();
  std::size_t unmapped_ = 0;  // lately, and not mapped again
  Clock::time_point unmapped_at_;
};

Pool& pool() {
  static Pool* const the_pool = new Pool;  // never destroyed: buffers may outlive static objects
  return *the_pool;
}

}  // namespace

void keep_pooled(std::size_t bytes) { pool().keep(bytes); }

Buffer::Buffer(std::size_t size) : size_(size) {
  if (size == 0) return;
  if (size >> 47 != 0) throw std::bad_alloc();  // more than a process can address
  if (size >= kPooled) {
    allocated_ = size_class(size);
    data_ = pool().take(allocated_);
    return;
  }
  void* data = nullptr;
  if (::posix_memalign(&data, kAlignment, size) != 0) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(data);
}

Buffer::~Buffer() {
  if (allocated_ > 0)
    pool().give(data_, allocated_);
  else
    std::free(data_);
}

void Buffer::discard() {
  if (allocated_ > 0)
    pool().discard(data_, allocated_);
  else
    std::free(data_);
  data_ = nullptr;
  size_ = allocated_ = 0;
}

}  // namespace batchfs
