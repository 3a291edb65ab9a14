#pragma once
// The memory budget: every byte of compressed, decoded and batch memory is reserved here first.
//
// Invariants: used() is the sum of the live reservations. try_reserve never takes used() over
// limit(). reserve() may (the work that a reader waits for must go on), and then try_reserve
// refuses until enough is given back.

#include <atomic>
#include <cstdint>
#include <utility>

namespace batchfs {

class Budget {
 public:
  explicit Budget(std::uint64_t limit) : limit_(limit) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  /// Bytes reserved; gives them back when destroyed. Movable; an empty one holds nothing.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Reservation& operator=(Reservation&& other) noexcept {
      if (this != &other) {
        release();
        budget_ = std::exchange(other.budget_, nullptr);
        bytes_ = std::exchange(other.bytes_, 0);
      }
      return *this;
    }
    ~Reservation() { release(); }
    explicit operator bool() const { return budget_ != nullptr; }
    std::uint64_t bytes() const { return bytes_; }
    /// Takes up to `bytes` out of this one.
    Reservation split(std::uint64_t bytes) {
      bytes = bytes < bytes_ ? bytes : bytes_;
      bytes_ -= bytes;
      return {budget_, bytes};
    }
    /// Adds `other`, of the same budget, to this one.
    void absorb(Reservation other) {
      if (budget_ == nullptr) budget_ = other.budget_;
      bytes_ += std::exchange(other.bytes_, 0);
    }
    void release() {
      if (budget_ != nullptr) budget_->used_.fetch_sub(bytes_, std::memory_order_relaxed);
      budget_ = nullptr;
      bytes_ = 0;
    }

   private:
    friend class Budget;
    Reservation(Budget* budget, std::uint64_t bytes) : budget_(budget), bytes_(bytes) {}
    Budget* budget_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

  /// Empty when it would go over the limit.
  Reservation try_reserve(std::uint64_t bytes);
  /// Always granted, for what a reader waits for.
  Reservation reserve(std::uint64_t bytes);

  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  std::uint64_t limit() const { return limit_; }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
};

/// Half of the smaller of physical memory and the cgroup's limit (v1 or v2).
std::uint64_t default_memory_budget();

}  // namespace batchfs
