#pragma once
// JSON that is written piece by piece, in the form of json_text(): documents of any length in
// little memory.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/json.h"

namespace batchfs {

/// Precondition: the calls make valid JSON, in objects a key before each value. Not thread-safe.
class JsonWriter {
 public:
  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }
  /// Ends the document.
  void end_line() { text_ += '\n'; }
  void key(std::string_view name);
  void value(std::int64_t number);
  void value(const Json& value);

  std::size_t size() const { return text_.size(); }
  /// The text since the last call.
  std::string take() { return std::exchange(text_, {}); }

 private:
  void begin(char bracket);
  void end(char bracket);
  /// Writes the text before a value: a comma unless it is the first, and its indentation.
  void place();
  void new_line();

  std::string text_;
  std::vector<bool> has_values_;  // of the open objects and arrays
  bool after_key_ = false;
};

}  // namespace batchfs
