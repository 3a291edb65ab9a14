#pragma once
// Layout of text for people: the width of the terminal, colours, line wrapping.

#include <cstddef>
#include <string>
#include <vector>

namespace batchfs {

/// How an output shows text.
struct TextLayout {
  std::size_t columns = 80;
  /// Wraps sentences of any length, too. Only on terminals, so that `grep` finds whole messages.
  bool wraps = false;
  bool colour = false;

  std::string heading(const std::string& text) const { return styled("1", text); }
  std::string name(const std::string& text) const { return styled("36", text); }
  std::string faint(const std::string& text) const { return styled("2", text); }
  std::string problem(const std::string& text) const { return styled("31", text); }

 private:
  std::string styled(const char* code, const std::string& text) const;
};

/// The layout for a descriptor. The width is that of COLUMNS, else of the terminal, else 80.
/// Colours are for terminals, unless NO_COLOR is set (https://no-color.org) or TERM is "dumb".
TextLayout text_layout(int fd);

/// Columns that a UTF-8 text takes, one for each character; escape sequences of colours take none.
std::size_t text_columns(const std::string& text);

/// The first `columns` columns, the last of them an ellipsis where text is left out. Not for text
/// with colours.
std::string shortened(const std::string& text, std::size_t columns);

/// Each line longer than `columns` continues on further lines, two columns further in than it
/// begins. Breaks at spaces only: a longer word stays whole. 0: no limit.
std::string wrapped(const std::string& text, std::size_t columns);

/// Lines of `pieces`, ", " between them, after `indent` spaces; continued lines two further in. A
/// line breaks between pieces, and inside of one only if it is longer than a line. Ends with a
/// newline.
std::string filled(const std::vector<std::string>& pieces, std::size_t indent, std::size_t columns);

}  // namespace batchfs
