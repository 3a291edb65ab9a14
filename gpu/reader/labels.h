#pragma once
// Labels of a batch: its samples, the starts of their windows, and the values of the view's
// coordinates there.

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
  /// The values of the schema's coordinate `number`, in its data type; valid while this object
  /// lives. Throws not_supported if the server leaves them out, corrupt, and the errors of reading
  /// them.
  virtual std::span<const std::byte> values(std::size_t number) const = 0;
};

/// Coordinates that came with a Welcome: after `begin` in `memory`. Throws corrupt unless they are
/// those of the schema.
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
  /// `load` is called on first use.
  Windows(std::shared_ptr<const Schema> schema, std::int64_t samples, std::function<Values()> load);

  /// Throws the errors of loading them.
  const Values& values() const;

 private:
  const std::shared_ptr<const Schema> schema_;
  const std::int64_t samples_;
  const std::function<Values()> load_;
  mutable std::mutex mutex_;  // guards loaded_ and values_ until they are loaded
  mutable bool loaded_ = false;
  mutable Values values_;
};

/// The windows of a batch. Throws not_supported if its server does not send them.
const Windows::Values& windows_of(const Batch& batch);

/// The value of a coordinate at a window's first position.
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

/// Throws not_found for samples and dimensions that are not in the batch, not_supported for strings
/// and for times outside the range of nanoseconds.
Label label_of(const Batch& batch, std::int64_t sample, const std::string& dim);

}  // namespace batchfs::reader
