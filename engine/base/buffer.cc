#include "engine/base/buffer.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <new>

#include <sys/mman.h>

#include "engine/base/buffer_pool.h"
#include "engine/base/rounding.h"
#include "engine/base/slabs.h"

namespace batchfs {

namespace {

constexpr std::size_t kAlignment = 64;
/// From this size on; smaller ones come from malloc.
constexpr std::size_t kPooled = kPoolsBuffers ? Slabs::kPage : SIZE_MAX;
constexpr std::size_t kHugePage = 2 << 20;

/// Sizes are rounded up to eighths of a power of two, so that similar chunks share free buffers.
std::size_t size_class(std::size_t size) {
  return round_up(size, std::max(std::bit_floor(size) / 8, Slabs::kPage));
}

/// Sizes up to Slabs::kMaxBlock are blocks of slabs, larger ones mappings.
bool is_block(std::size_t size) { return size <= Slabs::kMaxBlock; }

/// A virtual machine may return freed memory to its host some seconds later (free page reporting),
/// huge pages only: using one again then means fetching it from the host, small page by small page
/// (0.4 GB/s was measured, and 2.5 GB/s for small pages, which the machine had kept).
bool host_takes_huge_pages() {
  std::ifstream order("/sys/module/page_reporting/parameters/page_reporting_order");
  long long value = -1;
  return order >> value && value >= 0 &&
         value < 64;  // as unsigned -1 where no reports were requested
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

/// A free buffer; the record lies in its own memory.
struct FreeBuffer {
  std::size_t size;
  FreeBuffer *older, *newer;            // of all
  FreeBuffer *same_older, *same_newer;  // of those of this size
};

/// An allocator's state is the process's, like malloc's own.
class Pool {
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kHostTakes{1};  // sooner than the kernel reports it

 public:
  std::byte* take(std::size_t size) {
    {
      const std::lock_guard lock(mutex_);
      // The newest first: its pages are the likeliest to be in the processor's caches.
      if (FreeBuffer* const free = newest_of_[size]; free != nullptr) {
        unlink(free);
        return reinterpret_cast<std::byte*>(free);
      }
      if (is_block(size)) return slabs_.take(size);
    }
    return map(size, !host_takes_ || takes_back(size));
  }

  void give(std::byte* data, std::size_t size) noexcept {
    std::unique_lock lock(mutex_);
    link(reinterpret_cast<FreeBuffer*>(data), size);
    drop_surplus(std::move(lock));
  }

  void discard(std::byte* data, std::size_t size) noexcept {
    std::unique_lock lock(mutex_);
    note_unmapped(size);
    lock.unlock();
    unmap(data, size);
  }

  void keep(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    most_ = std::max(bytes, kMinPooled);
    drop_surplus(std::move(lock));
  }

 private:
  /// Precondition: mutex_ is held. take() has made the entry of this size.
  void link(FreeBuffer* free, std::size_t size) {
    FreeBuffer*& of_size = newest_of_.find(size)->second;
    *free = {size, newest_, nullptr, of_size, nullptr};
    if (newest_ != nullptr) newest_->newer = free;
    if (of_size != nullptr) of_size->same_newer = free;
    if (oldest_ == nullptr) oldest_ = free;
    newest_ = of_size = free;
    kept_ += size;
  }

  /// Precondition: mutex_ is held.
  void unlink(FreeBuffer* free) {
    kept_ -= free->size;
    (free->newer != nullptr ? free->newer->older : newest_) = free->older;
    (free->older != nullptr ? free->older->newer : oldest_) = free->newer;
    (free->same_newer != nullptr ? free->same_newer->same_older
                                 : newest_of_.find(free->size)->second) = free->same_older;
    if (free->same_older != nullptr) free->same_older->same_newer = free->same_newer;
  }

  /// Returns the oldest ones beyond the limit to the system, without the lock.
  void drop_surplus(std::unique_lock<std::mutex> lock) noexcept {
    FreeBuffer* surplus = nullptr;
    while (kept_ > most_) {
      FreeBuffer* const free = oldest_;
      unlink(free);
      note_unmapped(free->size);
      free->older = surplus;
      surplus = free;
    }
    lock.unlock();
    while (surplus != nullptr) {
      FreeBuffer* const free = surplus;
      surplus = free->older;
      unmap(reinterpret_cast<std::byte*>(free), free->size);
    }
  }

  /// Precondition: mutex_ is not held.
  void unmap(std::byte* data, std::size_t size) noexcept {
    if (!is_block(size)) {
      ::munmap(data, size);
      return;
    }
    Slabs::release(data, size);
    const std::lock_guard lock(mutex_);
    slabs_.give(data, size);
  }

  /// Precondition: mutex_ is held.
  void note_unmapped(std::size_t size) {
    if (!host_takes_ || is_block(size)) return;
    unmapped_ += size;
    unmapped_at_ = Clock::now();
  }

  /// Does the machine still have this much of the memory that was just unmapped?
  bool takes_back(std::size_t size) {
    const std::lock_guard lock(mutex_);
    if (Clock::now() - unmapped_at_ > kHostTakes) unmapped_ = 0;
    if (unmapped_ < size) return false;
    unmapped_ -= size;
    return true;
  }

  std::mutex mutex_;  // guards the members below
  Slabs slabs_;
  std::map<std::size_t, FreeBuffer*> newest_of_;  // by size; null: none is free
  FreeBuffer *oldest_ = nullptr, *newest_ = nullptr;
  std::size_t kept_ = 0, most_ = kMinPooled;  // bytes of free buffers
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

std::size_t buffer_memory(std::size_t size) {
  return size < kPooled ? size : round_up(size, Slabs::kPage);
}

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
