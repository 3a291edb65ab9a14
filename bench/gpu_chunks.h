#pragma once
// The input of the decoders of bench/gpu_decode, and the interface that a decoder implements.

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bench/gpu_fields.h"

namespace batchfs::bench {

/// Chunks of one kind, encoded, and the fields that they hold.
struct Chunks {
  Coding coding;
  std::size_t decoded_size;  // of each chunk
  std::vector<std::vector<float>> fields;
  std::vector<std::vector<std::byte>> encoded;

  Chunks(Field field, Coding wanted, std::size_t steps, std::size_t count)
      : coding(wanted),
        decoded_size(steps * kRows * kColumns * sizeof(float)),
        fields(count),
        encoded(count) {
    on_all_cores(count, [&](std::size_t i) {
      fields[i] = make_field(field, static_cast<unsigned>(i), steps);
      encoded[i] = bench::encoded(coding, fields[i]);
    });
  }

  std::size_t count() const { return fields.size(); }
  double ratio() const {
    std::size_t stored = 0;
    for (const auto& chunk : encoded) stored += chunk.size();
    return static_cast<double>(decoded_size * count()) / static_cast<double>(stored);
  }
};

/// One batch in flight in a decoder. Flights of one decoder overlap.
class Flight {
 public:
  virtual ~Flight() = default;
  /// Begins to bring the chunks [first, first + count) to the device, decoded. Returns at once.
  virtual void start(std::size_t first, std::size_t count) = 0;
  /// Waits for them. Returns the number of decoded bytes: less than all if the decoder refused
  /// some.
  virtual std::size_t finish() = 0;
  /// Milliseconds that the kernels took on the device while nothing else ran there; 0: no kernels.
  virtual double kernel_milliseconds() const { return 0; }
  /// Streams of the last batch that the decoder refused.
  virtual std::size_t refused() const { return 0; }
  /// Copies decoded bytes to the host. After finish().
  virtual void read(std::size_t offset, std::span<std::byte> to) const = 0;
};

/// Makes flights of up to `chunks` chunks.
using Decoder = std::function<std::unique_ptr<Flight>(std::size_t chunks)>;

}  // namespace batchfs::bench
