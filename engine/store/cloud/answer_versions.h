#pragma once
// The versions of objects as the answers of a service name them, and what another version means.
//
// A bucket names each version of an object by one ETag. Web servers have other habits: replicas
// behind one address name the same file by different ETags (those of old Apache servers contain
// the inode) or modification times, and some servers make up a modification time for each answer.
// So where a web server names another version of an object than the first one, the object is
// requested again (VersionDoubt):
//
//   - An answer that names the first version is the object's: its bytes are used.
//   - Modification times that no file can have, on equal bytes, are ignored from then on, at this
//     server. Objects are then compared by size, as where a server reports nothing.
//   - Otherwise the object has changed.

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/store/http/http_client.h"
#include "engine/store/object_versions.h"

namespace batchfs {

/// Thread-safe. Versions are those of version_of(), sizes those of check_object().
class AnswerVersions {
 public:
  explicit AnswerVersions(ObjectVersions::Options options) : versions_(std::move(options)) {}

  /// Remembers the version of an object that was not read before. False: it had another version.
  bool accept(const std::string& key, std::string_view version, std::optional<std::uint64_t> size);
  /// Has the object this version, which is known from an answer?
  bool has(const std::string& key, std::string_view version,
           std::optional<std::uint64_t> size) const;
  /// Has the object another version, or has none been read?
  bool may_have(const std::string& key, std::string_view version,
                std::optional<std::uint64_t> size) const;
  /// Has it been read, whatever its version?
  bool contains(const std::string& key) const { return versions_.contains(key); }

  /// The server's modification times are not those of its files.
  void ignore_dates() { dates_vary_ = true; }
  /// The first version of an object came again after another one.
  void note_return() { versions_return_ = true; }
  /// Answers with other versions after which an object has changed.
  int patience() const;

  std::vector<Store::Counter> counters() const { return versions_.counters(); }

 private:
  std::uint64_t digest(std::string_view version, std::optional<std::uint64_t> size) const;
  bool agree(std::uint64_t known, std::uint64_t digest, std::string_view version) const;

  ObjectVersions versions_;
  std::atomic<bool> dates_vary_{false}, versions_return_{false};
};

/// Answers to one request, one after the other, that name other versions than the first. Not
/// thread-safe.
class VersionDoubt {
 public:
  enum class Finding {
    unclear,     // ask again, after a pause
    changed,     // the object is another one
    dates_vary,  // the server makes up the modification times
  };
  /// `now`: nanoseconds of the steady clock. `patience`: answers, at most.
  Finding add(const HttpResponse& answer, const std::string& version, int patience,
              std::int64_t now);
  /// Nanoseconds before the next request.
  std::int64_t pause() const;

 private:
  int answers_ = 0;
  std::int64_t first_ = 0;          // when the first one came
  std::set<std::string> versions_;  // of the answers
  std::uint64_t bytes_ = 0;         // a digest of the first one's
  bool dates_only_ = true;          // they have no ETag, and equal bytes
  bool all_now_ = true;             // each was changed when it was sent, as it says
};

}  // namespace batchfs
