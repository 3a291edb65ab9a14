#pragma once
// Channels that are computed when all of their operands have arrived: combinations of variables,
// and blocks of a finer grid.
//
// The operands of a sample are collected in float64, in separate memory, which follows the tensors
// in a plan.

#include <cstddef>
#include <cstdint>

#include "engine/base/dims.h"

namespace batchfs {

/// One such channel in one tensor. Immutable, thread-safe.
class AssembledChannel {
 public:
  /// `tensor` is the channel's; `into` the destination: that tensor, or the operands of another
  /// channel, by their number in a plan. It begins there at `base` [bytes].
  AssembledChannel(std::uint32_t tensor, std::uint32_t into, std::int64_t base)
      : tensor_(tensor), into_(into), base_(base) {}
  virtual ~AssembledChannel() = default;

  std::uint32_t tensor() const { return tensor_; }
  std::uint32_t into() const { return into_; }
  std::int64_t base() const { return base_; }

  /// Bytes of a sample's operands.
  virtual std::int64_t sample_bytes() const = 0;

  /// Where write() puts the values of a sample: a box that begins at `out`, and its repetitions.
  struct Target {
    const Dims &shape, &strides;  // bytes
    const Repeat& repeat;
  };
  virtual Target target() const = 0;

  /// Writes one sample. `operands` is aligned for double, and may be overwritten; `out` is where
  /// the channel begins. `starts` are those of the sample's windows, as in Row.
  virtual void write(std::byte* operands, std::byte* out, const Dims& starts) const = 0;

 private:
  const std::uint32_t tensor_, into_;
  const std::int64_t base_;
};

}  // namespace batchfs
