#pragma once
// The memory budget: every byte of compressed, decoded and batch memory is reserved here first.
//
// Invariants: used() is the sum of the live reservations. try_reserve never takes used() over
// limit(). reserve() may (the work that a reader waits for must proceed), and then try_reserve
// refuses until enough is released. The amount of set_outside() counts as used.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace batchfs {

class Budget {
 public:
  explicit Budget(std::uint64_t limit) : limit_(limit), used_(std::make_shared<Used>(0)) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  /// Reserved bytes, released on destruction. Movable; an empty one holds nothing. May outlive the
  /// budget: a reader may hold a batch longer than the engine lives.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept
        : used_(std::move(other.used_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Reservation& operator=(Reservation&& other) noexcept {
      if (this != &other) {
        release();
        used_ = std::move(other.used_);
        bytes_ = std::exchange(other.bytes_, 0);
      }
      return *this;
    }
    ~Reservation() { release(); }
    explicit operator bool() const { return used_ != nullptr; }
    std::uint64_t bytes() const { return bytes_; }
    /// Takes up to `bytes` out of this one.
    Reservation split(std::uint64_t bytes) {
      bytes = bytes < bytes_ ? bytes : bytes_;
      bytes_ -= bytes;
      return {used_, bytes};
    }
    /// Adds `other`, of the same budget, to this one.
    void absorb(Reservation other) {
      if (used_ == nullptr) used_ = other.used_;
      bytes_ += std::exchange(other.bytes_, 0);
    }
    void release() {
      if (used_ != nullptr) used_->fetch_sub(bytes_, std::memory_order_relaxed);
      used_ = nullptr;
      bytes_ = 0;
    }

   private:
    friend class Budget;
    Reservation(std::shared_ptr<std::atomic<std::uint64_t>> used, std::uint64_t bytes)
        : used_(std::move(used)), bytes_(bytes) {}
    std::shared_ptr<std::atomic<std::uint64_t>> used_;
    std::uint64_t bytes_ = 0;
  };

  /// Empty when it would go over the limit.
  Reservation try_reserve(std::uint64_t bytes);
  /// Always granted, for work that a reader waits for.
  Reservation reserve(std::uint64_t bytes);

  /// Sets the memory in use beside the reservations: released batches that readers still map.
  void set_outside(std::uint64_t bytes) { outside_.store(bytes, std::memory_order_relaxed); }
  std::uint64_t outside() const { return outside_.load(std::memory_order_relaxed); }

  std::uint64_t used() const { return used_->load(std::memory_order_relaxed); }
  std::uint64_t limit() const { return limit_; }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> outside_{0};
  using Used = std::atomic<std::uint64_t>;
  const std::shared_ptr<Used> used_;
};

/// Half of the smaller of physical memory and the cgroup's limit (v1 or v2).
std::uint64_t default_memory_budget();

/// The kernel's figures for this process's cgroup (v1 or v2), which other processes may share.
struct CgroupMemory {
  std::uint64_t limit = UINT64_MAX;  // the least on the way to the root; UINT64_MAX: none
  std::uint64_t used = 0;
  std::uint64_t shared = 0;  // of these, files in memory: batches are
};
/// nullopt where there is no memory cgroup.
std::optional<CgroupMemory> cgroup_memory();

}  // namespace batchfs
