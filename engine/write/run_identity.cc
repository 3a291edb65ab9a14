#include "engine/write/run_identity.h"

#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <xxhash.h>

#include "engine/base/json_text.h"

namespace batchfs {

namespace {

Json parse_identity(const Buffer& bytes) {
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kRunKey);
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
  if (found)
    check_identity(output, identity, parse_identity(*found));
  else
    output.put(kRunKey, json_text(identity) + "\n");
}

void check_identity(const OutputStore& output, const Json& identity, const Json& found) {
  if (found.is_object() && found == identity) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the output is of another run: its \"{}\" differs; remove it, name a "
                          "new place, or repeat the command that began it",
                          difference(identity, found.is_object() ? found : Json::object())),
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
  return text_digest(place);
}

std::string text_digest(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

}  // namespace batchfs
