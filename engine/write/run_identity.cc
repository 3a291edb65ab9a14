#include "engine/write/run_identity.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/scan/source_versions.h"
#include "engine/store/fingerprint.h"

namespace batchfs {

namespace {

Json parse_identity(const Buffer& bytes) {
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kRunKey);
}

/// When several processes begin at once, one writes its identity and the others see it. Returns the
/// identity that the output had; nothing when it is now `identity`.
std::optional<Buffer> begin_output(OutputStore& output, const Json& identity) {
  constexpr auto kPause = std::chrono::milliseconds(5);
  constexpr int kMaxAttempts = 2000;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    if (std::optional<Buffer> found = output.get(kRunKey)) return found;
    if (const std::unique_ptr<OutputStore::Lock> lock = output.lock("lock-claim")) {
      std::optional<Buffer> found = output.get(kRunKey);
      if (!found) output.put(kRunKey, json_text(identity) + "\n");
      lock->remove();  // the owner of the output may have finished it
      return found;
    }
    std::this_thread::sleep_for(kPause);
  }
  throw Error(ErrorCode::io,
              "another process has begun to write the output, and has not named its run for 10 s; "
              "end that process",
              output.url());
}

/// All of an identity that the command line decides.
Json without_source(Json identity) {
  identity.erase("source");
  identity.erase("id");
  return identity;
}

/// The first key whose values differ.
std::string difference(const Json& a, const Json& b) {
  for (const auto& [key, value] : a.items())
    if (!b.contains(key) || b.at(key) != value) return key;
  return "version";
}

}  // namespace

void claim_output(OutputStore& output, const Json& identity) {
  std::optional<Buffer> found = output.get(kRunKey);
  if (!found && !output.is_empty()) {
    found = output.get(kRunKey);  // another task may have begun meanwhile
    if (!found)
      throw Error(ErrorCode::invalid_argument,
                  "the output exists and batchfs did not write it; name a new place", output.url());
  }
  if (!found) found = begin_output(output, identity);
  if (found) check_identity(output, identity, parse_identity(*found));
}

void check_identity(const OutputStore& output, const Json& identity, const Json& found) {
  if (found.is_object() && found == identity) return;
  if (found.is_object() && found.contains("source") && identity.contains("source") &&
      without_source(found) == without_source(identity))
    throw Error(ErrorCode::stale,
                fmt::format("the store has changed since the run began: objects of {} are of "
                            "another version, and the output would mix both; remove the output to "
                            "begin anew, or name a new place",
                            differing_arrays(found.at("source"), identity.at("source"))),
                output.url());
  const Json other = found.is_object() ? without_source(found) : Json::object();
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the output is of another run: its \"{}\" differs; remove it, name a "
                          "new place, or repeat the command that began it",
                          difference(without_source(identity), other)),
              output.url());
}

Json read_identity(OutputStore& output) {
  const std::optional<Buffer> found = output.get(kRunKey);
  if (!found)
    throw Error(ErrorCode::not_found, "no parts of a run: there is no .batchfs.json", output.url());
  return parse_identity(*found);
}

std::string place_digest(const Store& store) {
  std::string place = store.url();
  std::error_code ignored;
  if (store.is_local()) place = std::filesystem::weakly_canonical(place, ignored).string();
  return fingerprint(place);
}

}  // namespace batchfs
