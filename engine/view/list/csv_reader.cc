#include "engine/view/list/csv_reader.h"

#include <fmt/format.h>

namespace batchfs {

namespace {

constexpr std::size_t kMaxLine = 1 << 20;
constexpr std::size_t kMaxCells = 1024;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

CsvReader::CsvReader(NamedFile& file) : file_(file) { unquoted_.reserve(kMaxCells); }

Error CsvReader::error(const std::string& why) const {
  return file_.error(fmt::format("line {}: {}", line_, why));
}

bool CsvReader::next_line(std::string_view& line) {
  std::size_t end = buffer_.find('\n', at_);
  while (end == std::string::npos && !at_end_) {
    buffer_.erase(0, at_);
    at_ = 0;
    const std::size_t had = buffer_.size();
    if (had > kMaxLine) {
      ++line_;
      throw error("the line is longer than 1 MiB");
    }
    buffer_.resize(had + kMaxLine);
    const std::size_t read =
        file_.read({reinterpret_cast<std::byte*>(buffer_.data()) + had, kMaxLine});
    buffer_.resize(had + read);
    at_end_ = read < kMaxLine;
    end = buffer_.find('\n', had);
  }
  if (end == std::string::npos) {
    if (at_ == buffer_.size()) return false;
    end = buffer_.size();
  }
  line = std::string_view(buffer_).substr(at_, end - at_);
  at_ = end + 1 < buffer_.size() ? end + 1 : buffer_.size();
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line_ == 0 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  ++line_;
  return true;
}

void CsvReader::split(std::string_view line, std::vector<std::string_view>& cells) {
  cells.clear();
  unquoted_.clear();
  while (true) {
    if (cells.size() == kMaxCells) throw error("the line has more than 1024 cells");
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.starts_with('"')) {
      const std::size_t comma = line.find(',');
      cells.push_back(trimmed(line.substr(0, comma)));
      if (comma == std::string_view::npos) return;
      line.remove_prefix(comma + 1);
      continue;
    }
    std::string& cell = unquoted_.emplace_back();
    std::size_t i = 1;
    for (;; ++i) {
      if (i == line.size()) throw error("a cell begins with a quote and does not end with one");
      if (line[i] != '"') {
        cell += line[i];
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        cell += line[++i];
      } else {
        break;
      }
    }
    cells.push_back(cell);
    line.remove_prefix(i + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty()) return;
    if (line.front() != ',') throw error("text follows the quote that ends a cell");
    line.remove_prefix(1);
  }
}

bool CsvReader::next(std::vector<std::string_view>& cells) {
  std::string_view line;
  do {
    if (!next_line(line)) return false;
  } while (line.find_first_not_of(" \t") == std::string_view::npos);
  if (line.find('\0') != std::string_view::npos)
    throw error("it holds a NUL byte: not a .csv file");
  split(line, cells);
  return true;
}

}  // namespace batchfs
