#include "engine/base/json_comments.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/json_mistake.h"

namespace batchfs {

std::string without_comments(std::string_view text, const std::string& where) {
  std::string result(text);
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\') ++i;
      ++i;
      continue;
    }
    const std::string_view opening = text.substr(i, 2);
    if (opening != "//" && opening != "/*") {
      ++i;
      continue;
    }
    const bool line = opening == "//";
    const std::size_t found = text.find(line ? "\n" : "*/", i + 2);
    if (found == std::string_view::npos && !line)
      throw Error(
          ErrorCode::invalid_argument,
          "not valid JSON at " + describe_json_mistake(text, {i, "this comment is not closed"}),
          where);
    const std::size_t end = line ? std::min(found, text.size()) : found + 2;
    for (; i < end; ++i)
      if (text[i] != '\n' && text[i] != '\r') result[i] = ' ';
  }
  return result;
}

}  // namespace batchfs
