#pragma once
// Pieces of text for people: tables, shapes, numbers.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/dims.h"
#include "engine/base/json_text.h"
#include "engine/base/printable.h"

namespace batchfs {

/// Rows of cells with aligned columns, each row after `indent` spaces. The first row is the
/// heading.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) { add(std::move(heading)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text(std::size_t indent = 2) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// "132 x 73 x 144"; "scalar" without dimensions.
std::string shape_text(const Dims& shape);

/// 0.25 -> "25 %".
std::string percent_text(double share);

/// format_size() of an estimate.
std::string estimated_size(double bytes);

/// JSON of a list of lengths.
Json shape_json(const Dims& shape);

}  // namespace batchfs
