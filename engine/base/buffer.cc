#include "engine/base/buffer.h"

#include <bit>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>

#include <sys/mman.h>

namespace batchfs {

namespace {

constexpr std::size_t kAlignment = 64;
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kPooled = SIZE_MAX;  // it watches what malloc gives, to the byte
#else
constexpr std::size_t kPooled = 256 << 10;  // from this size on
#endif
constexpr std::size_t kKept = 64 << 20;     // free bytes that the pool keeps at most
constexpr std::size_t kHugePage = 2 << 20;

/// Sizes are rounded up to eighths of a power of two, so that similar chunks share free buffers.
std::size_t size_class(std::size_t size) {
  const std::size_t step = std::bit_floor(size) / 8;
  return (size + step - 1) / step * step;
}

/// Memory that starts on a huge page, and consists of such where it can.
std::byte* map(std::size_t size) {
  const std::size_t slack = size >= kHugePage ? kHugePage : 0;
  void* mapped = ::mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
    return map(size);
  }

  void give(std::byte* data, std::size_t size) {
    std::deque<std::pair<std::byte*, std::size_t>> surplus;
    {
      const std::lock_guard lock(mutex_);
      free_.emplace_back(data, size);
      kept_ += size;
      for (; kept_ > kKept; free_.pop_front()) {
        kept_ -= free_.front().second;
        surplus.push_back(free_.front());
      }
    }
    for (const auto& [old, bytes] : surplus) ::munmap(old, bytes);
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<std::byte*, std::size_t>> free_;  // oldest first; at most kKept / kPooled of them
  std::size_t kept_ = 0;
};

Pool& pool() {
  static Pool* const the_pool = new Pool;  // never destroyed: buffers may outlive static objects
  return *the_pool;
}

}  // namespace

Buffer::Buffer(std::size_t size) : size_(size) {
  if (size == 0) return;
  if (size >> 47 != 0) throw std::bad_alloc();  // more than a process can address
  if (size >= kPooled) {
    allocated_ = size_class(size);
    data_ = pool().take(allocated_);
    return;
  }
  data_ = static_cast<std::byte*>(
      std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment));
  if (data_ == nullptr) throw std::bad_alloc();
}

Buffer::~Buffer() {
  if (allocated_ > 0) pool().give(data_, allocated_);
  else std::free(data_);
}

}  // namespace batchfs
