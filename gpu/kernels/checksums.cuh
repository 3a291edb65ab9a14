#pragma once
// The checksums of zlib (Adler-32, RFC 1950) and gzip (CRC-32, RFC 1952), by a block of threads.
//
// Parallelism: both are sums over the bytes with weights that depend on the distance from the end.
// Each thread sums its own bytes: for Adler-32 every kThreads-th word, with weights modulo 65,521;
// for CRC-32 a stretch, whose remainder is multiplied by the power of x that the bytes after it
// make.

#include "gpu/kernels/lockstep.h"

namespace batchfs::gpu {

template <int kThreads>
struct ChecksumShared {
  std::uint64_t sums[kThreads];
  std::uint64_t more_sums[kThreads];
  std::uint32_t crc[4][256];  // the remainder of a byte that 0 to 3 others follow
};

/// The combination of all of `values`, by a block of threads. They are lost.
template <int kThreads, class Combine>
BATCHFS_GPU std::uint64_t combined(std::uint64_t (&values)[kThreads], Combine combine) {
  for (int distance = kThreads / 2; distance > 0; distance /= 2)
    each_thread<kThreads>([&](int thread) {
      if (thread < distance) values[thread] = combine(values[thread], values[thread + distance]);
    });
  Threads<std::uint64_t, kThreads> result;
  each_thread<kThreads>([&](int thread) { result[thread] = values[0]; });
  return result[0];
}

/// Adler-32 of bytes[0, size). Precondition: size <= kMaxStream, so that no sum overflows.
template <int kThreads>
BATCHFS_GPU std::uint32_t adler32_of(ChecksumShared<kThreads>& shared, const std::uint8_t* bytes,
                                     std::uint32_t size) {
  constexpr std::uint32_t kModulus = 65521;
  each_thread<kThreads>([&](int thread) {
    std::uint64_t sum = 0, weighted = 0;
    std::uint32_t at = 4 * static_cast<std::uint32_t>(thread);
    for (; at < size && size - at >= 4; at += 4 * kThreads) {
      const std::uint32_t word = load_u32(bytes + at);
      const std::uint32_t b0 = word & 0xff, b1 = word >> 8 & 0xff, b2 = word >> 16 & 0xff,
                          b3 = word >> 24;
      const std::uint32_t four = b0 + b1 + b2 + b3;
      sum += four;
      weighted += std::uint64_t{size - at} * four - (b1 + 2 * b2 + 3 * b3);
    }
    for (; at < size; ++at) {  // the last few, one thread's
      sum += bytes[at];
      weighted += std::uint64_t{size - at} * bytes[at];
    }
    shared.sums[thread] = sum;
    shared.more_sums[thread] = weighted % kModulus;
  });
  const auto add = [](std::uint64_t a, std::uint64_t b) { return a + b; };
  const std::uint64_t sum = combined<kThreads>(shared.sums, add);
  const std::uint64_t weighted = combined<kThreads>(shared.more_sums, add);
  const auto low = static_cast<std::uint32_t>((1 + sum) % kModulus);
  const auto high = static_cast<std::uint32_t>((size + weighted) % kModulus);
  return high << 16 | low;
}

// Polynomials over GF(2) modulo CRC-32's, the coefficient of x^0 in the highest bit.
inline constexpr std::uint32_t kCrcPolynomial = 0xedb88320u, kCrcOne = 0x80000000u,
                               kCrcByte = 0x00800000u;  // x^8

BATCHFS_GPU std::uint32_t times_x(std::uint32_t a) {
  return a >> 1 ^ ((a & 1) != 0 ? kCrcPolynomial : 0);
}

BATCHFS_GPU std::uint32_t crc_product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t result = 0;
  for (; a != 0; a <<= 1, b = times_x(b))
    if ((a & kCrcOne) != 0) result ^= b;
  return result;
}

/// x^(8 * bytes).
BATCHFS_GPU std::uint32_t crc_shift(std::uint32_t bytes) {
  std::uint32_t result = kCrcOne;
  for (std::uint32_t power = kCrcByte; bytes != 0; bytes >>= 1) {
    if ((bytes & 1) != 0) result = crc_product(power, result);
    power = crc_product(power, power);
  }
  return result;
}

/// CRC-32 of bytes[0, size).
template <int kThreads>
BATCHFS_GPU std::uint32_t crc32_of(ChecksumShared<kThreads>& shared, const std::uint8_t* bytes,
                                   std::uint32_t size) {
  each_thread<kThreads>([&](int thread) {
    for (auto byte = static_cast<std::uint32_t>(thread); byte < 256; byte += kThreads) {
      std::uint32_t remainder = byte;
      for (auto& after : shared.crc) {
        for (int bit = 0; bit < 8; ++bit) remainder = times_x(remainder);
        after[byte] = remainder;
      }
    }
  });
  const std::uint32_t share = (size / kThreads + 4) / 4 * 4;
  each_thread<kThreads>([&](int thread) {
    const std::uint64_t first = std::uint64_t{share} * static_cast<std::uint32_t>(thread);
    std::uint32_t at = first < size ? static_cast<std::uint32_t>(first) : size;
    const std::uint32_t end = size - at < share ? size : at + share;
    std::uint32_t remainder = thread == 0 ? 0xffffffffu : 0;
    for (; end - at >= 4; at += 4) {
      remainder ^= load_u32(bytes + at);
      remainder = shared.crc[3][remainder & 0xff] ^ shared.crc[2][remainder >> 8 & 0xff] ^
                  shared.crc[1][remainder >> 16 & 0xff] ^ shared.crc[0][remainder >> 24];
    }
    for (; at < end; ++at)
      remainder = shared.crc[0][(remainder ^ bytes[at]) & 0xff] ^ remainder >> 8;
    shared.sums[thread] = crc_product(crc_shift(size - end), remainder);
  });
  return ~static_cast<std::uint32_t>(
      combined<kThreads>(shared.sums, [](std::uint64_t a, std::uint64_t b) { return a ^ b; }));
}

}  // namespace batchfs::gpu
