#include "engine/view/list/list_reader.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "engine/dataset/label_number.h"
#include "engine/view/list/csv_reader.h"
#include "engine/view/list/label_positions.h"
#include "engine/view/list/npy_reader.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMaxRows = INT64_C(1) << 27;  // 1 GiB of starts
constexpr std::uint64_t kMaxText = std::uint64_t{2} << 30;
constexpr std::int64_t kRowsUnchecked = 1 << 16;

std::string dims_of(const ListedView& view) {
  std::vector<std::string> names;
  for (const StartRule& rule : view.rules) names.push_back(rule.dim());
  return join(names, ", ");
}

SampleList empty_list(const ListedView& view) {
  Dims lengths;
  for (const StartRule& rule : view.rules) lengths.push_back(view.selected.at(rule.dim()).size());
  return SampleList(lengths);
}

Error too_many_rows(const NamedFile& file) {
  return Error(ErrorCode::not_supported,
               fmt::format("a list has at most {}", counted(kMaxRows, "row")), file.where());
}

/// Throws where they would take too much memory: a code, twice in a list that grows, and each column
/// twice, since it becomes a tensor.
void check_rows(const ListSpec& spec, const ListedView& view, std::int64_t rows, bool grows) {
  const std::uint64_t numbers = (grows ? 2 : 1) + 2 * view.columns.size();
  check_list(view.dataset, static_cast<std::uint64_t>(rows) * sizeof(std::int64_t) * numbers,
             spec.file.path, "the rows of the list");
}

/// Rows that do not fit: how many, and why the first of them does not.
class Misfits {
 public:
  void note(std::int64_t row, const std::string& why) {
    if (row == last_) return;
    ++count_;
    last_ = row;
    if (first_.empty()) first_ = why;
  }
  /// Throws if there are any. `name`: of the key.
  void check(const std::string& key, std::int64_t rows, const NamedFile& file) const {
    if (count_ == 0) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {}; {} of {} {} not fit", key, first_, count_,
                            counted(rows, "row"), count_ == 1 ? "does" : "do"),
                file.where());
  }

 private:
  std::int64_t count_ = 0, last_ = -1;
  std::string first_;
};

void read_npy(const ListSpec& spec, const ListedView& view, NamedFile& file, SampleList& list) {
  const NpyHeader header = read_npy_header(file);
  const auto dims = static_cast<std::int64_t>(view.rules.size());
  const bool one = header.shape.size() == 1 && dims == 1;
  if (header.kind == 'f' || header.kind == 'b')
    throw file.error(fmt::format("{}: starts are whole numbers, and the array has {}",
                                 spec.file.path, header.kind == 'f' ? "floats" : "booleans"));
  if (!one && (header.shape.size() != 2 || header.shape[1] != dims)) {
    std::vector<std::string> shape;
    for (const std::int64_t length : header.shape) shape.push_back(std::to_string(length));
    throw file.error(
        fmt::format("{}: the array has the shape ({}); it needs a row for each sample "
                    "and a column for each dimension of \"window\": {}",
                    spec.file.path, join(shape, ", "), dims_of(view)));
  }
  const std::int64_t rows = header.shape[0];
  if (rows > kMaxRows) throw too_many_rows(file);
  check_rows(spec, view, rows, false);
  std::vector<std::int64_t>& codes = list.codes();
  codes.resize(static_cast<std::size_t>(rows));
  // A column at a time in the order of Fortran: the row that is wrong first may not come first.
  std::int64_t first_wrong = rows, wrong = 0;
  std::string why;
  read_npy_integers(file, header, [&](std::int64_t first, std::span<const std::int64_t> values) {
    std::int64_t row = header.fortran_order ? first % rows : first / dims;
    std::size_t w = static_cast<std::size_t>(header.fortran_order ? first / rows : first % dims);
    for (const std::int64_t value : values) {
      std::int64_t& code = codes[static_cast<std::size_t>(row)];
      const std::int64_t start = view.rules[w].start(value);
      if (start < 0) {
        wrong += code >= 0 ? 1 : 0;
        code = INT64_MIN;
        if (row < first_wrong) {
          first_wrong = row;
          why = fmt::format("row {}: {}", row, view.rules[w].why(value));
        }
      } else if (code >= 0) {
        code += start * list.steps()[w];
      }
      if (header.fortran_order) {
        if (++row == rows) row = 0, ++w;
      } else if (++w == view.rules.size()) {
        w = 0, ++row;
      }
    }
  });
  if (wrong > 0)
    throw file.error(fmt::format("{}: {}; {} of {} {} not fit", spec.file.path, why, wrong,
                                 counted(rows, "row"), wrong == 1 ? "does" : "do"));
}

/// The columns of a header, by name. Throws for one that is not there, or twice.
std::size_t column_of(const CsvReader& csv, const std::vector<std::string>& header,
                      const std::string& name, const std::string& key) {
  const auto it = std::find(header.begin(), header.end(), name);
  if (it == header.end())
    throw csv.error(
        fmt::format("{}: there is no column '{}'{}", key, name,
                    header.size() == 1 && header[0].find_first_of(";\t") != std::string::npos
                        ? fmt::format("; the columns of '{}' are not separated by ',': write the "
                                      "file with commas",
                                      printable(header[0]))
                        : nearest_or_all(name, header)));
  if (std::find(it + 1, header.end(), name) != header.end())
    throw csv.error(fmt::format("{}: there are two columns '{}'", key, name));
  return static_cast<std::size_t>(it - header.begin());
}

/// Enters a number, or a boolean as Python writes it. Returns why not, or nothing.
std::string_view add_number(std::string_view text, ListColumn& column) {
  std::int64_t whole = 0;
  double number = 0;
  const char* end = text.data() + text.size();
  if (text.starts_with('+')) text.remove_prefix(1);
  if (const auto [at, error] = std::from_chars(text.data(), end, whole);
      error == std::errc() && at == end) {
    column.add(whole);
  } else if (error == std::errc::result_out_of_range && at == end) {
    // A float64 in its place may be another identifier.
    LabelNumber exact = 0;
    read_label_number(text.data(), end, exact);
    if (static_cast<double>(exact) != exact)
      return "is beyond an int64, and a float64 does not hold it";
    column.add(static_cast<double>(exact));
  } else if (const auto [stop, failed] = std::from_chars(text.data(), end, number);
             failed == std::errc() && stop == end && !text.empty()) {
    column.add(number);
  } else if (text == "True" || text == "true" || text == "False" || text == "false") {
    column.add(static_cast<std::int64_t>(text[0] == 'T' || text[0] == 't' ? 1 : 0));
  } else {
    return "is not a number";
  }
  return {};
}

std::string tolerance_along(const ListSpec& spec, const std::string& dim) {
  std::string others;
  for (const auto& [name, text] : spec.tolerance) {
    if (name == dim) return text;
    if (name.empty()) others = text;
  }
  return others;
}

void read_csv(const ListSpec& spec, const ListedView& view, NamedFile& file, SampleList& list) {
  if (file.size() > kMaxText)
    throw Error(ErrorCode::not_supported,
                "a .csv file has at most 2 GiB; save the starts as a .npy file", file.where());
  const std::string& key = spec.file.path;
  CsvReader csv(file);
  std::vector<std::string_view> cells;
  if (!csv.next(cells)) throw file.error(fmt::format("{}: the file is empty", key));
  const std::vector<std::string> header(cells.begin(), cells.end());
  std::vector<std::size_t> start_columns, number_columns;
  std::vector<LabelPositions> labels;
  for (const auto& [dim, text] : spec.tolerance)
    if (!dim.empty() && std::none_of(view.rules.begin(), view.rules.end(),
                                     [&](const StartRule& rule) { return rule.dim() == dim; }))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}.{}: '{}' is not a dimension of \"window\"", spec.tolerance_path,
                              dim, dim));
  for (const StartRule& rule : view.rules) {
    start_columns.push_back(column_of(csv, header, rule.dim(), key));
    labels.emplace_back(view.dataset, rule.dim(), view.selected.at(rule.dim()), spec.nearest,
                        tolerance_along(spec, rule.dim()), spec.tolerance_path);
  }
  for (const auto& [name, path] : view.columns) {
    number_columns.push_back(column_of(csv, header, name, path));
    list.columns().push_back({name});
  }
  Misfits misfits;
  std::int64_t row = 0;
  std::string why;
  for (; csv.next(cells); ++row) {
    if (row == kMaxRows) throw too_many_rows(file);
    if (row % kRowsUnchecked == 0) check_rows(spec, view, row + kRowsUnchecked, true);
    if (cells.size() != header.size())
      throw csv.error(fmt::format("{}: the line has {}, and the header {}", key,
                                  counted(static_cast<std::int64_t>(cells.size()), "cell"),
                                  header.size()));
    const auto place = [&] { return fmt::format("row {} (line {})", row, csv.line()); };
    std::int64_t code = 0;
    for (std::size_t w = 0; w < view.rules.size(); ++w) {
      const StartRule& rule = view.rules[w];
      const std::int64_t position = labels[w].find(cells[start_columns[w]], why);
      if (position < 0) {
        misfits.note(row, fmt::format("{}, {}: {}", place(), rule.dim(), why));
        continue;
      }
      const std::int64_t start = rule.start(position);
      if (start < 0)
        misfits.note(row, fmt::format("{}: {}", place(), rule.why(position)));
      else
        code += start * list.steps()[w];
    }
    for (std::size_t c = 0; c < number_columns.size(); ++c)
      if (const std::string_view cell = cells[number_columns[c]],
          reason = add_number(cell, list.columns()[c]);
          !reason.empty())
        misfits.note(row,
                     fmt::format("{}, {}: '{}' {}", place(), view.columns[c].first, cell, reason));
    list.codes().push_back(code);
  }
  misfits.check(key, row, file);
  list.codes().shrink_to_fit();
  for (ListColumn& column : list.columns()) {
    column.integers.shrink_to_fit();
    column.floats.shrink_to_fit();
  }
}

}  // namespace

std::shared_ptr<const SampleList> read_list(const ListSpec& spec, const ListedView& view) {
  NamedFile file(spec.file.place);
  SampleList list = empty_list(view);
  if (spec.is_csv)
    read_csv(spec, view, file, list);
  else
    read_npy(spec, view, file, list);
  if (list.rows() == 0)
    throw file.error(fmt::format("{}: no sample is left: the file has no row", spec.file.path));
  list.set_digest(file.digest());
  check_digest(spec.file, list.digest());
  return std::make_shared<const SampleList>(std::move(list));
}

}  // namespace batchfs
