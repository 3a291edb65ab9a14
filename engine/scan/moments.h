#pragma once
// Count, mean, variance and extremes of numbers, in parts that are put together.

#include <cstdint>
#include <limits>
#include <span>

namespace batchfs {

/// Of a set of numbers. NaN are counted and otherwise left out.
struct Moments {
  std::int64_t count = 0, nan = 0;
  double mean = 0;
  double m2 = 0;  // sum of squared differences from the mean
  double min = std::numeric_limits<double>::infinity(),
         max = -std::numeric_limits<double>::infinity();

  /// Of the population: divided by the count. NaN without numbers.
  double std() const;
};

/// Kahan's and Neumaier's sum: the error does not grow with the number of terms.
class CompensatedSum {
 public:
  void add(double value);
  double value() const;

 private:
  double sum_ = 0, rest_ = 0;
};

/// Computes moments in two passes over blocks of numbers: first all blocks to add(), then, after
/// next_pass(), all of them again.
class TwoPassMoments {
 public:
  static constexpr std::size_t kLanes = 8;

  /// The size of the storage behind `block` must be a multiple of kLanes: it is overwritten behind
  /// the end.
  void add(std::span<double> block);
  void next_pass();
  Moments moments() const;

 private:
  bool second_ = false;
  Moments moments_;
  CompensatedSum sum_, squares_;
};

/// Puts parts together, in order, with the formula of Chan, Golub and LeVeque (1979).
class MergedMoments {
 public:
  void add(const Moments& part);
  Moments moments() const;

 private:
  Moments total_;
  CompensatedSum sum_, m2_;
};

}  // namespace batchfs
