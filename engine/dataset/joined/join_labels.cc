#include "engine/dataset/joined/join_labels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "engine/dataset/labels.h"

namespace batchfs {

JoinLabels::JoinLabels(const Dataset::Index& index) {
  constexpr std::int64_t kMaxLabels = INT64_C(1) << 24;
  const NdArray& labels = index.values;
  const std::int64_t size = labels.shape[0];
  if (size > kMaxLabels)
    throw Error(ErrorCode::not_supported,
                fmt::format("{} labels; at most {} can be joined", size, kMaxLabels));
  extent_ = size == 0 ? "nothing"
                      : fmt::format("{} to {}", label_text(index, 0), label_text(index, size - 1));
  const auto count = static_cast<std::size_t>(size);
  is_label_.assign(count, true);
  const DataType& type = labels.type;
  if (const auto times = TimeAxis::of(index)) {
    form_ = Form::times;
    calendar_ = times->calendar();
    Whole whole(count);
    for (std::int64_t i = 0; i < size; ++i) {
      const auto time = times->nanoseconds(i);
      is_label_[static_cast<std::size_t>(i)] = time.has_value();
      whole[static_cast<std::size_t>(i)] = time.value_or(0);
    }
    values_ = std::move(whole);
  } else if (type.kind == Kind::timedelta) {
    form_ = Form::lengths_of_time;
    const auto unit = unit_nanoseconds(type);
    if (!unit)
      throw Error(ErrorCode::not_supported,
                  fmt::format("lengths of time of type {} cannot be compared", type.name()));
    Whole whole(count);
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t length = label_count(labels, i);
      is_label_[static_cast<std::size_t>(i)] = length != INT64_MIN;
      whole[static_cast<std::size_t>(i)] = static_cast<__int128>(length) * *unit;
    }
    values_ = std::move(whole);
  } else if (type.is_integer()) {
    form_ = Form::whole_numbers;
    Whole whole(count);
    for (std::int64_t i = 0; i < size; ++i)
      whole[static_cast<std::size_t>(i)] = static_cast<__int128>(label_number(labels, i));
    values_ = std::move(whole);
  } else if (type.is_float() || type.kind == Kind::boolean) {
    Numbers numbers(count);
    for (std::int64_t i = 0; i < size; ++i) {
      const LabelNumber number = label_number(labels, i);
      is_label_[static_cast<std::size_t>(i)] = !std::isnan(number);
      numbers[static_cast<std::size_t>(i)] = number;
    }
    values_ = std::move(numbers);
  } else if (type.kind == Kind::unicode || type.kind == Kind::bytes) {
    form_ = Form::texts;
    std::vector<std::string> texts(count);
    for (std::int64_t i = 0; i < size; ++i)
      texts[static_cast<std::size_t>(i)] = label_text(labels, i);
    values_ = std::move(texts);
  } else {
    throw Error(ErrorCode::not_supported,
                fmt::format("labels of type {} cannot be compared", type.name()));
  }
  sort();
}

std::int64_t JoinLabels::size() const { return static_cast<std::int64_t>(is_label_.size()); }

void JoinLabels::sort() {
  order_.clear();
  for (std::int64_t i = 0; i < size(); ++i)
    if (is_label(i)) order_.push_back(i);
  std::visit(
      [this](const auto& values) {
        std::stable_sort(order_.begin(), order_.end(), [&](std::int64_t a, std::int64_t b) {
          return values[static_cast<std::size_t>(a)] < values[static_cast<std::size_t>(b)];
        });
      },
      values_);
}

JoinLabels JoinLabels::as_numbers() const {
  JoinLabels result = *this;
  result.form_ = Form::numbers;
  Numbers numbers;
  for (const __int128 value : std::get<Whole>(values_))
    numbers.push_back(static_cast<LabelNumber>(value));
  result.values_ = std::move(numbers);
  return result;
}

std::optional<std::pair<std::int64_t, std::int64_t>> JoinLabels::duplicates() const {
  return std::visit(
      [this](const auto& values) -> std::optional<std::pair<std::int64_t, std::int64_t>> {
        for (std::size_t i = 1; i < order_.size(); ++i)
          if (values[static_cast<std::size_t>(order_[i - 1])] ==
              values[static_cast<std::size_t>(order_[i])])
            return std::pair(order_[i - 1], order_[i]);
        return std::nullopt;
      },
      values_);
}

}  // namespace batchfs
