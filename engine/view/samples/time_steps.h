#pragma once
// The times along a dimension of a view: their steps, and the label that lies a duration after
// another.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/calendar.h"
#include "engine/dataset/dataset.h"
#include "engine/dataset/positions.h"
#include "engine/view/samples/duration.h"

namespace batchfs {

class TimeAxis;

/// Has the dimension a coordinate of times (datetime64, or numbers in a calendar of CF), or of
/// lengths of time (timedelta64)?
bool has_times(const Dataset& dataset, const std::string& dim);

/// Immutable, thread-safe. 8 bytes a position.
class TimeSteps {
 public:
  /// The labels at `positions` of the dimension's coordinate. Throws invalid_argument, with `path`
  /// in front, if they are not times.
  TimeSteps(const Dataset& dataset, const std::string& dim, const Positions& positions,
            const std::string& path);

  std::int64_t size() const { return static_cast<std::int64_t>(times_.size()); }
  /// For messages: "2000-01-01T06:00:00".
  std::string label(std::int64_t i) const;
  bool is_missing(std::int64_t i) const { return at(i) == INT64_MIN; }  // NaT

  /// Is label `j` exactly one step after label `i`? NaT is after nothing. A step of months leads to
  /// the same day and time, or to the last day of a month where that day does not exist, as
  /// pandas.DateOffset; where no month has several labels, from the last day of a month also to the
  /// last day, and from its exact middle to the exact middle.
  bool follows(std::int64_t i, std::int64_t j, const Duration& step) const;

  /// Is label `i` a whole number of steps before or after `origin`, nanoseconds since the
  /// calendar's 1970-01-01? Months count as in follows(). False for NaT.
  bool is_multiple_from(std::int64_t i, __int128 origin, const Duration& step) const;
  /// For a label that is not missing.
  __int128 nanoseconds(std::int64_t i) const { return static_cast<__int128>(at(i)) * unit_; }
  bool has_dates() const { return calendar_; }  // else lengths of time
  Calendar calendar() const { return kind_; }

  /// The step from each label to the next one, if it is constant.
  std::optional<Duration> regular_step() const;
  /// The step that leads from more than half of the labels to the next; nullopt without one.
  std::optional<Duration> common_step() const;
  /// The first label that does not follow the one before by `step`; nullopt if all do.
  std::optional<std::int64_t> first_irregular(const Duration& step) const;

  /// The first label that is not greater (ascending) or not smaller (descending) than the one
  /// before, or NaT; nullopt if every label occurs once and in order.
  std::optional<std::int64_t> first_unordered() const;
  /// The position of the label that is `duration` after label `i`; -1 if there is none. Looks at
  /// `hint` first. Precondition: no label is unordered.
  std::int64_t find(std::int64_t i, const Duration& duration, std::int64_t hint = -1) const;

 private:
  /// Times that count as this many months after another.
  struct Candidates {
    std::array<std::int64_t, 3> times;
    std::size_t count = 0;
  };
  void take_times(const NdArray& values, const Positions& positions);
  void take_numbers(const TimeAxis& times, const Positions& positions);
  std::int64_t at(std::int64_t i) const { return times_[static_cast<std::size_t>(i)]; }
  /// The step between two labels; nullopt for a difference that no Duration holds.
  std::optional<Duration> step_between(std::int64_t i, std::int64_t j) const;
  /// Months since year 0 of a time.
  std::int64_t month(std::int64_t time) const;
  bool find_monthly() const;
  Candidates months_after(std::int64_t time, std::int64_t months) const;
  std::optional<Duration> calendar_step() const;
  std::int64_t search(std::int64_t time) const;  // -1: not there

  std::vector<std::int64_t> times_;                // counts of `unit_`; INT64_MIN is NaT
  std::int64_t unit_ = 1;                          // nanoseconds, at most one second
  bool calendar_ = true;                           // times, not lengths of time
  Calendar kind_ = Calendar::proleptic_gregorian;  // of the times
  bool descending_ = false;
  bool monthly_ = false;  // labels that follow each other are never of one month
};

/// The axes of a view, each made when it is first requested. For one thread.
class TimeStepsByDim {
 public:
  /// Both outlive it. `selected` is by dimension.
  TimeStepsByDim(const Dataset& dataset, const std::map<std::string, Positions>& selected)
      : dataset_(dataset), selected_(selected) {}
  /// Throws as TimeSteps does.
  std::shared_ptr<const TimeSteps> along(const std::string& dim, const std::string& path);

 private:
  const Dataset& dataset_;
  const std::map<std::string, Positions>& selected_;
  std::map<std::string, std::shared_ptr<const TimeSteps>> axes_;
};

}  // namespace batchfs
