#pragma once
// JSON reading: lenient where old Zarr writers need it, strict where a person typed it, and always
// with the path of the value in the error ("variables[2]: expected a string").

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/limits.h"

namespace batchfs {

/// Keeps the order of keys: in views the order of `window` and `stack` matters, and metadata is
/// shown as it was stored.
using Json = nlohmann::ordered_json;

struct JsonOptions {
  /// Accept the tokens NaN, Infinity and -Infinity outside strings: numbers, as Python's json module
  /// writes them. json_text() and python_json_text() write them back.
  bool allow_nan = true;
  /// Refuse an object that names a key twice.
  bool unique_keys = false;
  /// Bytes that the parsed document and the parser may take.
  std::uint64_t memory = kMaxJsonMemory;
};

/// Parses `text`. Throws invalid_argument naming line and column, `where` (a file or key) as the
/// place; for a text beyond a limit of engine/base/limits.h, too; no_memory beyond
/// `options.memory`. Takes linear time. The last value of a repeated key counts, at the first
/// place.
Json parse_json(std::string_view text, const std::string& where, JsonOptions options = {});

/// Adds a member in constant time, where `object[key] = value` compares with every key.
/// Precondition: `object` is an object without this key.
void append_member(Json& object, std::string key, Json value);

/// A value and its path in the document, for reading with checks. Cheap to copy; the document must
/// outlive it. Every accessor throws invalid_argument with the path when the type does not fit.
class JsonRef {
 public:
  JsonRef(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  const Json& value() const { return *value_; }
  const std::string& path() const { return path_; }

  bool is_string() const { return value_->is_string(); }
  bool is_object() const { return value_->is_object(); }
  bool is_array() const { return value_->is_array(); }
  bool is_number() const { return value_->is_number(); }
  bool is_null() const { return value_->is_null(); }

  JsonRef at(std::string_view key) const;                   // throws when the key is missing
  std::optional<JsonRef> find(std::string_view key) const;  // nullopt when missing
  std::vector<std::pair<std::string, JsonRef>> members() const;
  std::vector<JsonRef> elements() const;

  std::string string() const;
  bool boolean() const;
  double number() const;
  /// A whole number (also written 3.0) inside [low, high].
  std::int64_t integer(std::int64_t low = INT64_MIN, std::int64_t high = INT64_MAX) const;
  std::vector<std::string> strings() const;

  /// Throws for a key that is not in `known`, naming the nearest one.
  void allow_only(std::initializer_list<std::string_view> known) const;

  /// An Error of this place: `why` with the path in front.
  [[nodiscard]] Error error(const std::string& why,
                            ErrorCode code = ErrorCode::invalid_argument) const;

 private:
  const Json* value_;
  std::string path_;
};

/// The candidate nearest to `name` in edit distance, for "did you mean"; empty when none is near.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

/// ", did you mean 'x'?" or nothing.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

/// The same, or all candidates when none is near: "; there are a, b, c".
std::string nearest_or_all(std::string_view name, std::vector<std::string> candidates);

}  // namespace batchfs
