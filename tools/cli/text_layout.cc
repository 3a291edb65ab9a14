#include "tools/cli/text_layout.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

#include "engine/base/strings.h"
#include "engine/base/utf8.h"

namespace batchfs {

namespace {

constexpr std::size_t kMinColumns = 40, kMaxColumns = 1000;

/// Bytes of the escape sequence "ESC [ ... m" that begins at `at`; 0: none does.
std::size_t escape_length(const std::string& text, std::size_t at) {
  if (text[at] != '\x1b') return 0;
  const std::size_t end = text.find('m', at);
  return end == std::string::npos ? 0 : end - at + 1;
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

/// 0: not a number.
std::size_t columns_of_environment() {
  const char* text = std::getenv("COLUMNS");
  if (text == nullptr) return 0;
  std::size_t columns = 0;
  const std::string_view digits(text);
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), columns);
  return error == std::errc() && stop == digits.data() + digits.size() ? columns : 0;
}

std::string wrapped_line(const std::string& line, std::size_t columns) {
  const std::size_t first = line.find_first_not_of(' ');
  if (first == std::string::npos || text_columns(line) <= columns) return line;
  const std::string margin(std::min(first + 2, columns / 2), ' ');
  std::string out = line.substr(0, first);
  std::size_t used = first;
  bool fresh = true;  // no word stands on the line yet
  for (const std::string& word : split(std::string_view(line).substr(first), ' ')) {
    const std::size_t width = text_columns(word);
    if (fresh && width == 0 && used == margin.size()) continue;  // between columns of a table
    if (!fresh && used + 1 + width > columns) {
      out.resize(out.find_last_not_of(' ') + 1);
      out += "\n" + margin;
      used = margin.size();
      fresh = true;
      if (width == 0) continue;
    }
    out += (fresh ? "" : " ") + word;
    used += width + (fresh ? 0 : 1);
    fresh = false;
  }
  return out;
}

}  // namespace

std::string TextLayout::styled(const char* code, const std::string& text) const {
  if (!colour || text.empty()) return text;
  return std::string("\x1b[") + code + "m" + text + "\x1b[0m";
}

TextLayout text_layout(int fd) {
  TextLayout layout;
  const bool terminal = ::isatty(fd) == 1;
  std::size_t columns = columns_of_environment();
  winsize size{};
  if (columns == 0 && terminal && ::ioctl(fd, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  layout.wraps = terminal;
  if (columns != 0) layout.columns = std::clamp(columns, kMinColumns, kMaxColumns);
  const char* type = std::getenv("TERM");
  layout.colour =
      terminal && !is_set("NO_COLOR") && (type == nullptr || std::string_view(type) != "dumb");
  return layout;
}

std::size_t text_columns(const std::string& text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t escape = escape_length(text, i)) {
      i += escape;
      continue;
    }
    columns += is_utf8_tail(text[i]) ? 0 : 1;
    ++i;
  }
  return columns;
}

std::string shortened(const std::string& text, std::size_t columns) {
  if (text_columns(text) <= columns) return text;
  if (columns < 3) return {};
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (!is_utf8_tail(text[i]) && seen++ == columns - 3) return text.substr(0, i) + "...";
  return text;
}

std::string wrapped(const std::string& text, std::size_t columns) {
  if (columns == 0) return text;
  std::string out;
  const std::vector<std::string> lines = split(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i)
    out += (i > 0 ? "\n" : "") + wrapped_line(lines[i], columns);
  return out;
}

std::string filled(const std::vector<std::string>& pieces, std::size_t indent,
                   std::size_t columns) {
  std::string out, line(indent, ' ');
  bool fresh = true;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::string piece = pieces[i] + (i + 1 < pieces.size() ? "," : "");
    if (!fresh && text_columns(line) + 1 + text_columns(piece) > columns) {
      out += wrapped_line(line, columns) + "\n";
      line = std::string(indent + 2, ' ');
      fresh = true;
    }
    line += (fresh ? "" : " ") + piece;
    fresh = false;
  }
  return out + wrapped_line(line, columns) + "\n";
}

}  // namespace batchfs
