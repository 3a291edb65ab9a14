#pragma once
// One source for the GPU and for the host: a decoder is written once, over the few words of this
// file, and nvcc compiles it to a kernel while g++ compiles it to a plain function that tests drive
// without a GPU.
//
// The terms are those of a block of threads that takes steps together. each_thread and each_warp
// run a step for every thread or warp of the block, with a barrier at the end; on the host, a loop
// over threads replaces them. Inside a warp, each_lane runs a step for every lane, and every lane
// or thread has its own value of a Lanes<T> or Threads<T>. Lanes exchange values only by the
// collectives (ballot, shuffle, scan), so that the host runs the very algorithm of 32 lanes.
//
// A step must not depend on the order of its lanes or threads: the unit tests run once with the
// lanes in ascending and once in descending order (BATCHFS_GPU_DESCENDING).

#include <cstdint>

#if defined(__CUDACC__)
#define BATCHFS_GPU __device__ __forceinline__
#define BATCHFS_GPU_TABLE static __device__ const
#else
#include <bit>
#include <cstring>
#define BATCHFS_GPU inline
#define BATCHFS_GPU_TABLE inline constexpr
#endif

namespace batchfs::gpu {

inline constexpr int kLanes = 32;

#if defined(__CUDACC__)

template <class T>
class Lanes {
 public:
  BATCHFS_GPU T& operator[](int) { return value_; }
  BATCHFS_GPU const T& operator[](int) const { return value_; }

 private:
  T value_;
};

template <class T, int kThreads>
using Threads = Lanes<T>;
/// A variable of each warp.
template <class T, int kThreads>
using Warps = Lanes<T>;

template <class Step>
BATCHFS_GPU void each_lane(Step step) {
  step(static_cast<int>(threadIdx.x) % kLanes);
}

/// Makes the lanes' writes to memory visible to one another.
BATCHFS_GPU void sync_lanes() { __syncwarp(); }

template <int kThreads, class Step>
BATCHFS_GPU void each_thread(Step step) {
  step(static_cast<int>(threadIdx.x));
  __syncthreads();
}

template <int kThreads, class Step>
BATCHFS_GPU void each_warp(Step step) {
  step(static_cast<int>(threadIdx.x) / kLanes);
  __syncthreads();
}

template <int kThreads>
BATCHFS_GPU bool any_thread(const Threads<bool, kThreads>& flags) {
  return __syncthreads_or(flags[0]);
}

/// each_warp with a step that returns a flag, the same in all lanes: whether any warp's was set.
template <int kThreads, class Step>
BATCHFS_GPU bool any_warp(Step step) {
  return __syncthreads_or(step(static_cast<int>(threadIdx.x) / kLanes));
}

/// Bit i is lane i's flag.
BATCHFS_GPU std::uint32_t ballot(const Lanes<bool>& flags) {
  return __ballot_sync(0xffffffffu, flags[0]);
}

/// Each lane gets the set of lanes that have its value.
BATCHFS_GPU Lanes<std::uint32_t> same_lanes(const Lanes<std::uint32_t>& values) {
  Lanes<std::uint32_t> result;
  result[0] = __match_any_sync(0xffffffffu, values[0]);
  return result;
}

/// Each lane gets the value of the lane that it names.
template <class T>
BATCHFS_GPU Lanes<T> shuffle(const Lanes<T>& values, const Lanes<int>& from) {
  Lanes<T> result;
  result[0] = __shfl_sync(0xffffffffu, values[0], from[0]);
  return result;
}

/// Each lane gets the value of the lane `distance` below it; the lowest keep their own.
template <class T>
BATCHFS_GPU Lanes<T> from_below(const Lanes<T>& values, int distance) {
  Lanes<T> result;
  result[0] = __shfl_up_sync(0xffffffffu, values[0], distance);
  return result;
}

template <class T>
BATCHFS_GPU T value_of(const Lanes<T>& values, int lane) {
  return __shfl_sync(0xffffffffu, values[0], lane);
}

BATCHFS_GPU int bits_in(std::uint32_t word) { return __popc(word); }
/// The position of the highest bit of `word`, which is not zero.
BATCHFS_GPU int top_bit(std::uint32_t word) { return 31 - __clz(static_cast<int>(word)); }

/// The bits of `word` in reverse order.
BATCHFS_GPU std::uint32_t reversed_bits(std::uint32_t word) { return __brev(word); }

BATCHFS_GPU void raise_to(std::uint32_t* word, std::uint32_t value) { atomicMax(word, value); }

/// A little-endian word at any address. Reads no byte outside the aligned words that hold it.
BATCHFS_GPU std::uint32_t load_u32(const std::uint8_t* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const auto* words = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
  const unsigned shift = 8 * static_cast<unsigned>(address & 3);
  const std::uint32_t low = words[0];
  return shift == 0 ? low : __funnelshift_r(low, words[1], shift);
}

BATCHFS_GPU std::uint64_t load_u64(const std::uint8_t* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const auto* words = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
  const unsigned shift = 8 * static_cast<unsigned>(address & 3);
  const std::uint32_t middle = words[1];
  const std::uint32_t high = shift == 0 ? middle : __funnelshift_r(middle, words[2], shift);
  return std::uint64_t{high} << 32 | __funnelshift_r(words[0], middle, shift);
}

/// The 32 bits of {high, low} from bit `shift` modulo 32 on.
BATCHFS_GPU std::uint32_t funnel(std::uint32_t low, std::uint32_t high, unsigned shift) {
  return __funnelshift_r(low, high, shift);
}

/// The upper 32 bits of {high, low} shifted left by `shift` modulo 32.
BATCHFS_GPU std::uint32_t funnel_left(std::uint32_t low, std::uint32_t high, unsigned shift) {
  return __funnelshift_l(low, high, shift);
}

/// Byte i of the result is the byte of {high, low} that nibble i of `selector` names.
BATCHFS_GPU std::uint32_t pick_bytes(std::uint32_t low, std::uint32_t high,
                                     std::uint32_t selector) {
  return __byte_perm(low, high, selector);
}

#else

template <class T>
class Lanes {
 public:
  T& operator[](int lane) { return values_[lane]; }
  const T& operator[](int lane) const { return values_[lane]; }

 private:
  T values_[kLanes] = {};
};

template <class T, int kThreads>
class Threads {
 public:
  T& operator[](int thread) { return values_[thread]; }
  const T& operator[](int thread) const { return values_[thread]; }

 private:
  T values_[kThreads] = {};
};

template <class T, int kThreads>
using Warps = Threads<T, kThreads / kLanes>;

template <class Step>
void in_order(int count, Step step) {
#if defined(BATCHFS_GPU_DESCENDING)
  for (int i = count - 1; i >= 0; --i) step(i);
#else
  for (int i = 0; i < count; ++i) step(i);
#endif
}

template <class Step>
void each_lane(Step step) {
  in_order(kLanes, step);
}

inline void sync_lanes() {}

template <int kThreads, class Step>
void each_thread(Step step) {
  in_order(kThreads, step);
}

template <int kThreads, class Step>
void each_warp(Step step) {
  in_order(kThreads / kLanes, step);
}

template <int kThreads>
bool any_thread(const Threads<bool, kThreads>& flags) {
  for (int i = 0; i < kThreads; ++i)
    if (flags[i]) return true;
  return false;
}

template <int kThreads, class Step>
bool any_warp(Step step) {
  bool any = false;
  in_order(kThreads / kLanes, [&](int warp) { any = step(warp) || any; });
  return any;
}

inline std::uint32_t ballot(const Lanes<bool>& flags) {
  std::uint32_t result = 0;
  for (int i = 0; i < kLanes; ++i) result |= static_cast<std::uint32_t>(flags[i]) << i;
  return result;
}

inline Lanes<std::uint32_t> same_lanes(const Lanes<std::uint32_t>& values) {
  Lanes<std::uint32_t> result;
  for (int i = 0; i < kLanes; ++i)
    for (int j = 0; j < kLanes; ++j)
      result[i] |= static_cast<std::uint32_t>(values[i] == values[j]) << j;
  return result;
}

template <class T>
Lanes<T> shuffle(const Lanes<T>& values, const Lanes<int>& from) {
  Lanes<T> result;
  for (int i = 0; i < kLanes; ++i) result[i] = values[from[i] & (kLanes - 1)];
  return result;
}

template <class T>
Lanes<T> from_below(const Lanes<T>& values, int distance) {
  Lanes<T> result;
  for (int i = 0; i < kLanes; ++i) result[i] = values[i >= distance ? i - distance : i];
  return result;
}

template <class T>
T value_of(const Lanes<T>& values, int lane) {
  return values[lane];
}

inline int bits_in(std::uint32_t word) { return std::popcount(word); }
inline int top_bit(std::uint32_t word) { return std::bit_width(word) - 1; }

inline std::uint32_t reversed_bits(std::uint32_t word) {
  std::uint32_t result = 0;
  for (int i = 0; i < 32; ++i) result |= (word >> i & 1) << (31 - i);
  return result;
}

inline void raise_to(std::uint32_t* word, std::uint32_t value) {
  if (*word < value) *word = value;
}

inline std::uint32_t load_u32(const std::uint8_t* at) {
  std::uint32_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

inline std::uint64_t load_u64(const std::uint8_t* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

inline std::uint32_t funnel(std::uint32_t low, std::uint32_t high, unsigned shift) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(high) << 32 | low) >> (shift & 31));
}

inline std::uint32_t funnel_left(std::uint32_t low, std::uint32_t high, unsigned shift) {
  return static_cast<std::uint32_t>(
      (static_cast<std::uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}

inline std::uint32_t pick_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  const std::uint64_t both = static_cast<std::uint64_t>(high) << 32 | low;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<std::uint32_t>(both >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
  return result;
}

#endif

/// Four words that are loaded and stored together, at an address that 16 divides.
struct alignas(16) FourWords {
  std::uint32_t word[4];
};

#if defined(__CUDACC__)
/// `at` is a multiple of 4.
BATCHFS_GPU void store_word(std::uint8_t* at, std::uint32_t word) {
  *reinterpret_cast<std::uint32_t*>(at) = word;
}
BATCHFS_GPU FourWords load_four(const void* at) { return *static_cast<const FourWords*>(at); }
BATCHFS_GPU void store_four(void* at, const FourWords& words) {
  *static_cast<FourWords*>(at) = words;
}
#else
inline void store_word(std::uint8_t* at, std::uint32_t word) {
  std::memcpy(at, &word, sizeof word);
}
inline FourWords load_four(const void* at) {
  FourWords words;
  std::memcpy(&words, at, sizeof words);
  return words;
}
inline void store_four(void* at, const FourWords& words) { std::memcpy(at, &words, sizeof words); }
#endif

/// The upper `count` modulo 32 bits of `word`.
BATCHFS_GPU std::uint32_t top_bits(std::uint32_t word, unsigned count) {
  return funnel_left(word, 0, count);
}

/// Each lane gets the sum of its own and all lower lanes' values.
template <class T>
BATCHFS_GPU Lanes<T> inclusive_scan(Lanes<T> values) {
  for (int distance = 1; distance < kLanes; distance *= 2) {
    const Lanes<T> below = from_below(values, distance);
    each_lane([&](int lane) {
      if (lane >= distance) values[lane] += below[lane];
    });
  }
  return values;
}

/// The bits of the lanes below `lane`.
BATCHFS_GPU std::uint32_t lanes_below(int lane) { return (1u << lane) - 1; }
/// The bits of the lanes up to and including `lane`.
BATCHFS_GPU std::uint32_t lanes_up_to(int lane) { return 0xffffffffu >> (kLanes - 1 - lane); }

}  // namespace batchfs::gpu
