#pragma once
// Lines of a .csv file, read block by block. Format: RFC 4180, with LF or CRLF, and a byte order
// mark or not; a cell in quotes may not hold line breaks.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/view/list/named_file.h"

namespace batchfs {

class CsvReader {
 public:
  /// Reads from the beginning of `file`, which must outlive the reader.
  explicit CsvReader(NamedFile& file);

  /// The cells of the next line that is not empty, without spaces around them; false at the end.
  /// They are valid until the next call. Throws invalid_argument, naming the line, for a quote
  /// without its end, NUL bytes, and lines longer than 1 MiB or of more than 1024 cells.
  bool next(std::vector<std::string_view>& cells);
  /// Number of the last line, from 1.
  std::int64_t line() const { return line_; }
  [[nodiscard]] Error error(const std::string& why) const;

 private:
  bool next_line(std::string_view& line);
  void split(std::string_view line, std::vector<std::string_view>& cells);

  NamedFile& file_;
  std::string buffer_;
  std::size_t at_ = 0;  // of the next line
  bool at_end_ = false;
  std::int64_t line_ = 0;
  std::vector<std::string> unquoted_;  // cells in which quotes were doubled
};

}  // namespace batchfs
