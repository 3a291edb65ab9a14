#include "engine/view/describe/json_writer.h"

#include <fmt/format.h>

#include "engine/base/json_text.h"

namespace batchfs {

void JsonWriter::new_line() {
  text_ += '\n';
  text_.append(2 * has_values_.size(), ' ');
}

void JsonWriter::place() {
  if (std::exchange(after_key_, false) || has_values_.empty()) return;
  if (has_values_.back()) text_ += ',';
  has_values_.back() = true;
  new_line();
}

void JsonWriter::begin(char bracket) {
  place();
  text_ += bracket;
  has_values_.push_back(false);
}

void JsonWriter::end(char bracket) {
  const bool has_values = has_values_.back();
  has_values_.pop_back();
  if (has_values) new_line();
  text_ += bracket;
}

void JsonWriter::key(std::string_view name) {
  place();
  text_ += json_text(Json(name), -1);
  text_ += ": ";
  after_key_ = true;
}

void JsonWriter::value(std::int64_t number) {
  place();
  text_ += fmt::format_int(number).c_str();
}

void JsonWriter::value(const Json& value) {
  place();
  // Strings have no line breaks of their own in JSON.
  for (const char c : json_text(value))
    if (c == '\n')
      new_line();
    else
      text_ += c;
}

}  // namespace batchfs
