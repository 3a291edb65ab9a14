#include "tools/cli/text.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "tools/cli/text_layout.h"

namespace batchfs {

std::string Table::text(std::size_t indent) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], text_columns(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] - text_columns(row[i]) + 2, ' ');
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string shape_text(const Dims& shape) {
  if (shape.empty()) return "scalar";
  std::vector<std::string> parts;
  for (const std::int64_t n : shape) parts.push_back(std::to_string(n));
  return join(parts, " x ");
}

std::string estimated_size(double bytes) { return format_size(static_cast<std::uint64_t>(bytes)); }

std::string percent_text(double share) { return fmt::format("{:.0f} %", 100 * share); }

Json shape_json(const Dims& shape) {
  return Json(std::vector<std::int64_t>(shape.begin(), shape.end()));
}

}  // namespace batchfs
