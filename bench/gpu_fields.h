#pragma once
// Fields like those of weather stores, and their encoded chunks, for the GPU benchmark and the GPU
// tests.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <blosc.h>
#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

namespace batchfs::bench {

inline constexpr std::size_t kRows = 640, kColumns = 1280;

enum class Field { grib16, smooth };

/// Noise over all scales, the finer the weaker, on a latitude gradient: a temperature. `grib16`
/// holds the values that a 16-bit GRIB message can; `smooth` has float32's full precision.
inline std::vector<float> make_field(Field kind, unsigned seed, std::size_t steps = 1) {
  std::vector<float> field(steps * kRows * kColumns);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (std::size_t step = 0; step < steps; ++step) {
    float* values = field.data() + step * kRows * kColumns;
    for (std::size_t y = 0; y < kRows; ++y) {
      const float latitude = 3.14159265f * (static_cast<float>(y) / kRows - 0.5f);
      for (std::size_t x = 0; x < kColumns; ++x)
        values[y * kColumns + x] = 250 + 50 * std::cos(latitude);
    }
    float strength = 8;
    for (std::size_t cell = 256; cell >= 4; cell /= 2, strength *= 0.36f) {
      const std::size_t rows = kRows / cell + 2, columns = kColumns / cell + 2;
      std::vector<float> knots(rows * columns);
      for (float& knot : knots) knot = normal(random) * strength;
      for (std::size_t y = 0; y < kRows; ++y)
        for (std::size_t x = 0; x < kColumns; ++x) {
          const auto smoothed = [&](std::size_t i) {
            const float t = static_cast<float>(i % cell) / static_cast<float>(cell);
            return t * t * (3 - 2 * t);
          };
          const float u = smoothed(x), v = smoothed(y);
          const float* at = &knots[y / cell * columns + x / cell];
          values[y * kColumns + x] += (at[0] * (1 - u) + at[1] * u) * (1 - v) +
                                      (at[columns] * (1 - u) + at[columns + 1] * u) * v;
        }
    }
    if (kind == Field::smooth) continue;
    const float low = 180, scale = 1.0f / 512;  // GRIB's reference value and binary scale
    for (std::size_t i = 0; i < kRows * kColumns; ++i)
      values[i] = low + std::round((values[i] - low) / scale) * scale;
  }
  return field;
}

/// `zlib4`: as NetCDF-4 files are written, shuffled and deflated.
enum class Coding { blosc_lz4, blosc_zstd, zstd3, lz4_block, zlib4 };

inline const char* name_of(Coding coding) {
  switch (coding) {
    case Coding::blosc_lz4:
      return "blosc-lz4";
    case Coding::blosc_zstd:
      return "blosc-zstd";
    case Coding::zstd3:
      return "zstd-3";
    case Coding::zlib4:
      return "zlib-4";
    default:
      return "lz4 block";
  }
}

/// HDF5's and numcodecs' shuffle of float32.
inline std::vector<std::byte> shuffled(const std::vector<float>& field) {
  const auto bytes = std::as_bytes(std::span(field));
  std::vector<std::byte> planes(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    planes[i % sizeof(float) * field.size() + i / sizeof(float)] = bytes[i];
  return planes;
}

inline std::vector<std::byte> encoded(Coding coding, const std::vector<float>& field) {
  const std::size_t size = field.size() * sizeof(float);
  std::vector<std::byte> chunk(ZSTD_compressBound(size) + BLOSC_MAX_OVERHEAD +
                               sizeof(std::uint32_t) + size / 200);
  std::size_t got = 0;
  if (coding == Coding::zstd3) {
    got = ZSTD_compress(chunk.data(), chunk.size(), field.data(), size, 3);
  } else if (coding == Coding::zlib4) {
    const std::vector<std::byte> planes = shuffled(field);
    uLongf stored = chunk.size();
    if (compress2(reinterpret_cast<Bytef*>(chunk.data()), &stored,
                  reinterpret_cast<const Bytef*>(planes.data()), planes.size(), 4) != Z_OK)
      throw std::runtime_error("zlib does not compress");
    got = stored;
  } else if (coding == Coding::lz4_block) {
    const auto decoded = static_cast<std::uint32_t>(size);
    std::memcpy(chunk.data(), &decoded, sizeof decoded);
    got = sizeof decoded +
          static_cast<std::size_t>(LZ4_compress_default(
              reinterpret_cast<const char*>(field.data()),
              reinterpret_cast<char*>(chunk.data()) + sizeof decoded, static_cast<int>(size),
              static_cast<int>(chunk.size() - sizeof decoded)));
  } else {
    const int done =
        blosc_compress_ctx(5, BLOSC_SHUFFLE, sizeof(float), size, field.data(), chunk.data(),
                           chunk.size(), coding == Coding::blosc_lz4 ? "lz4" : "zstd", 0, 1);
    if (done <= 0) throw std::runtime_error("Blosc does not compress");
    got = static_cast<std::size_t>(done);
  }
  chunk.resize(got);
  chunk.shrink_to_fit();
  return chunk;
}

/// Calls work(i) for i in [0, count) on every core.
template <class Work>
void on_all_cores(std::size_t count, Work work) {
  std::vector<std::thread> threads;
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t core = 0; core < cores; ++core)
    threads.emplace_back([=] {
      for (std::size_t i = core; i < count; i += cores) work(i);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace batchfs::bench
