#pragma once
// The source of a sweep's values: an array of the store, or a made channel.

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "engine/dataset/dataset.h"
#include "engine/pipeline/engine.h"
#include "engine/view/view.h"

namespace batchfs {

/// Immutable, thread-safe.
class SweepSource {
 public:
  using Done = std::function<void(std::exception_ptr error)>;
  virtual ~SweepSource() = default;

  virtual const std::string& name() const = 0;
  /// A piece of a sweep lies in one of these boxes.
  virtual Dims chunk_shape() const = 0;
  /// Bytes that are decoded or made for one of them.
  virtual std::uint64_t chunk_bytes() const = 0;
  /// Elements of one of them, at most.
  virtual std::uint64_t chunk_elements() const = 0;

  /// Reads a box in array coordinates as float64, C order. `done` is called once, from any thread,
  /// possibly before this returns, unless this throws.
  virtual void read(Engine& engine, const Box& box, std::shared_ptr<Buffer> values,
                    Done done) const = 0;
};

/// The variable outlives it.
std::shared_ptr<const SweepSource> array_source(const Variable& variable);

/// The logarithms that "normalize" with "log1p" takes of the values of `values`.
std::shared_ptr<const SweepSource> logarithms_of(std::shared_ptr<const SweepSource> values,
                                                 double scale);

/// A made channel of a view, by its number in TensorSet::made; the view outlives it. Throws
/// not_supported for channels of variables that cannot be read.
std::shared_ptr<const SweepSource> made_source(const View& view, std::uint32_t number);

}  // namespace batchfs
