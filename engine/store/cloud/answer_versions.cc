#include "engine/store/cloud/answer_versions.h"

#include <algorithm>
#include <cstdlib>

#include "engine/store/fingerprint.h"
#include "engine/store/http/response_checks.h"

namespace batchfs {

namespace {

/// With two replicas of which each answer comes from either, one object in 4000 fails; once the
/// server is known to have replicas, one in 4 billion.
constexpr int kPatience = 12, kReplicaPatience = 32;
/// So that a read still ends in time.
constexpr std::int64_t kLongestDoubt = 10'000'000'000;
/// Answers with dates that all differ, before the dates are ignored.
constexpr std::size_t kMinDates = 4;
/// Dates count whole seconds.
constexpr std::int64_t kDatePause = 1'100'000'000;

/// The half of a version's digest that stands for the object's size.
constexpr std::uint64_t kSizeHalf = 0xffffffff;

/// Does the answer claim that the object changed when it was sent?
bool is_changed_now(const HttpResponse& answer) {
  const std::optional<std::int64_t> modified = modified_of(answer);
  const std::optional<std::int64_t> sent = sent_of(answer);
  return modified && sent && std::abs(*modified - *sent) <= 1;
}

}  // namespace

/// That of a date contains that of the size, so that both can be compared apart.
std::uint64_t AnswerVersions::digest(std::string_view version,
                                     std::optional<std::uint64_t> size) const {
  const std::uint64_t whole = versions_.digest(identity_of(version, size));
  if (!is_date(version) || !size) return whole;
  return (whole & ~kSizeHalf) | (versions_.digest(identity_of({}, size)) & kSizeHalf);
}

bool AnswerVersions::agree(std::uint64_t known, std::uint64_t digest,
                           std::string_view version) const {
  return known == digest ||
         (dates_vary_ && is_date(version) && (known & kSizeHalf) == (digest & kSizeHalf));
}

bool AnswerVersions::accept(const std::string& key, std::string_view version,
                            std::optional<std::uint64_t> size) {
  const std::uint64_t its_digest = digest(version, size);
  return versions_.accept(key, its_digest) ||
         agree(versions_.find(key).value_or(its_digest), its_digest, version);
}

bool AnswerVersions::has(const std::string& key, std::string_view version,
                         std::optional<std::uint64_t> size) const {
  const std::optional<std::uint64_t> known = versions_.find(key);
  return known && agree(*known, digest(version, size), version);
}

bool AnswerVersions::may_have(const std::string& key, std::string_view version,
                              std::optional<std::uint64_t> size) const {
  const std::optional<std::uint64_t> known = versions_.find(key);
  return !known || agree(*known, digest(version, size), version);
}

int AnswerVersions::patience() const { return versions_return_ ? kReplicaPatience : kPatience; }

VersionDoubt::Finding VersionDoubt::add(const HttpResponse& answer, const std::string& version,
                                        int patience, std::int64_t now) {
  const std::uint64_t bytes = lasting_digest({reinterpret_cast<const char*>(answer.body.data()),
                                              is_date(version) ? answer.body.size() : 0});
  if (answers_++ == 0) {
    first_ = now;
    bytes_ = bytes;
  }
  versions_.insert(version);
  const bool all_differ = versions_.size() == static_cast<std::size_t>(answers_);
  dates_only_ = dates_only_ && all_differ && is_date(version) && bytes == bytes_;
  all_now_ = all_now_ && is_changed_now(answer);
  const auto seconds = static_cast<std::size_t>((now - first_) / 1'000'000'000);
  if (dates_only_ && versions_.size() >= kMinDates && (all_now_ || versions_.size() > seconds + 2))
    return Finding::dates_vary;
  return answers_ >= patience || now - first_ > kLongestDoubt ? Finding::changed : Finding::unclear;
}

std::int64_t VersionDoubt::pause() const { return dates_only_ && all_now_ ? kDatePause : 0; }

}  // namespace batchfs
