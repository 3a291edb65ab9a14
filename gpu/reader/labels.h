#pragma once
// Labels of a batch: which samples it holds, where their windows begin, and what the view's
// coordinates say there.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "gpu/handoff/protocol.h"
#include "gpu/reader/batch.h"

namespace batchfs::reader {

/// The values of a view's coordinates. Thread-safe.
class Coordinates {
 public:
  virtual ~Coordinates() = default;
  /// Of the schema's coordinate `number`, in its data type; valid as long as this object. Throws
  /// not_supported where the server leaves it out, corrupt, and what reading it throws.
  virtual std::span<const std::byte> values(std::size_t number) const = 0;
};

/// Coordinates that came with a Welcome: behind `begin` in `memory`. Throws corrupt unless
/// they are those of the schema.
std::shared_ptr<const Coordinates> received_coordinates(std::shared_ptr<const Mapping> memory,
                                                        std::uint64_t begin,
                                                        const handoff::CoordinatesRecord& record,
                                                        std::shared_ptr<const Schema> schema);

/// The samples of a batch: their numbers, then where the window of each begins, sample by sample,
/// as positions of the view's selection. Thread-safe.
class Windows {
 public:
  using Values = std::vector<std::int64_t>;
  /// Throws corrupt unless they are windows of the schema.
  Windows(const Schema& schema, std::int64_t samples, Values values);
  /// `load` is called when they are first asked for.
  Windows(std::shared_ptr<const Schema> schema, std::int64_t samples, std::function<Values()> load);

  /// Throws what loading them throws.
  const Values& values() const;

 private:
  const std::shared_ptr<const Schema> schema_;
  const std::int64_t samples_;
  const std::function<Values()> load_;
  mutable std::mutex mutex_;  // guards loaded_ and values_ until they are loaded
  mutable bool loaded_ = false;
  mutable Values values_;
};

/// The windows of a batch; throws not_supported where its server does not tell them.
const Windows::Values& windows_of(const Batch& batch);

/// What a coordinate says of a window's first position.
struct Label {
  enum class Type : std::int32_t {
    position = 1,  // no coordinate: where the window begins in the store
    integer = 2,
    number = 3,
    time = 4,      // nanoseconds since 1970-01-01
    duration = 5,  // nanoseconds
  };
  Type type = Type::position;
  std::int64_t integer = 0;  // of all types but number; INT64_MIN of a time: not a time
  double number = 0;
};

/// Throws not_found for samples and dimensions that the batch does not have, not_supported for
/// strings and for times beyond nanoseconds.
Label label_of(const Batch& batch, std::int64_t sample, const std::string& dim);

}  // namespace batchfs::reader
