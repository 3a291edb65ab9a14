#pragma once
// The requests of one service that writes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/store/cloud/object_service.h"

namespace batchfs {

/// An object is one put(), which replaces the object of the same key. Where a service also takes
/// parts, an object of more than `largest_put` bytes is made of these: begin_parts(), a put_part()
/// for each, and join_parts(), before which readers see nothing of it.
class WritableService : public ObjectService {
 public:
  struct WriteLimits {
    std::uint64_t largest_put = 0;  // bytes of an object that is put at once
    std::uint64_t part = 0;         // bytes of a part, but the last; 0: there are no parts
    std::uint64_t parts = 0;        // of an object
  };
  virtual WriteLimits write_limits() const = 0;
  /// Called before anything is sent: credentials must be good for writing.
  virtual void expect_writes() {}

  virtual HttpRequest put(const std::string& key, std::string body) = 0;
  /// A missing object is not an error: the answer is `missing`, or good.
  virtual HttpRequest remove(const std::string& key);

  /// nullopt: nothing is asked before the parts.
  virtual std::optional<HttpRequest> begin_parts(const std::string& key);
  /// The upload that an answer to begin_parts() names. Throws corrupt.
  virtual std::string upload_name(const HttpResponse& response) const;
  /// `number` counts from 0.
  virtual HttpRequest put_part(const std::string& key, const std::string& upload,
                               std::uint64_t number, std::string body);
  /// Returns the name under which join_parts() lists a part, from the answer to it. Throws corrupt.
  virtual std::string part_name(const HttpResponse& response, std::uint64_t number) const;
  virtual HttpRequest join_parts(const std::string& key, const std::string& upload,
                                 const std::vector<std::string>& parts);
  /// Throws io when a good status came with a failure after all.
  virtual void check_joined(const HttpResponse& response) const;
  /// Gives up an upload. nullopt: the service does that itself.
  virtual std::optional<HttpRequest> drop_parts(const std::string& key, const std::string& upload);
};

}  // namespace batchfs
