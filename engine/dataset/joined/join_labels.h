#pragma once
// Labels of a coordinate in a form that those of another store can be compared with: times of any
// unit in nanoseconds, whole numbers, other numbers, texts.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/dataset/calendar.h"
#include "engine/dataset/dataset.h"
#include "engine/dataset/label_number.h"

namespace batchfs {

/// Immutable, thread-safe.
class JoinLabels {
 public:
  enum class Form : std::uint8_t { times, lengths_of_time, whole_numbers, numbers, texts };

  /// Throws not_supported for labels of another type, and for more than 2^24.
  explicit JoinLabels(const Dataset::Index& index);

  Form form() const { return form_; }
  Calendar calendar() const { return calendar_; }
  std::int64_t size() const;
  /// "2000-01-01 to 2020-12-31", in stored order; "nothing".
  const std::string& extent() const { return extent_; }
  /// Whole numbers as others, exactly: for comparing them with such.
  JoinLabels as_numbers() const;

  /// Two positions with the same label; nullopt: each occurs once. NaN and NaT are not labels.
  std::optional<std::pair<std::int64_t, std::int64_t>> duplicates() const;

  /// Values in stored order: of times and lengths of time nanoseconds, of whole numbers themselves.
  using Whole = std::vector<__int128>;
  using Numbers = std::vector<LabelNumber>;
  using Values = std::variant<Whole, Numbers, std::vector<std::string>>;
  const Values& values() const { return values_; }
  /// Positions of the labels, ascending by value.
  const std::vector<std::int64_t>& order() const { return order_; }
  /// Is there a label, not NaN or NaT?
  bool is_label(std::int64_t position) const {
    return is_label_[static_cast<std::size_t>(position)];
  }

 private:
  JoinLabels() = default;
  void sort();

  Form form_ = Form::numbers;
  Calendar calendar_ = Calendar::proleptic_gregorian;
  Values values_;
  std::vector<bool> is_label_;
  std::vector<std::int64_t> order_;
  std::string extent_;
};

}  // namespace batchfs
