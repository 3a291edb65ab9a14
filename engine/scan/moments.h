#pragma once
// Count, mean, variance and extremes of numbers, in parts that are put together.

#include <cstdint>
#include <limits>
#include <span>

namespace batchfs {

/// Moments of a set of numbers. NaN are counted and otherwise left out.
struct Moments {
  std::int64_t count = 0, nan = 0;
  double mean = 0;
  double m2 = 0;  // sum of squared differences from the mean
  double min = std::numeric_limits<double>::infinity(),
         max = -std::numeric_limits<double>::infinity();

  /// The standard deviation of the population: divided by the count. NaN without numbers.
  double std() const;
};

/// Kahan's and Neumaier's sum: the error does not grow with the number of terms.
class CompensatedSum {
 public:
  CompensatedSum() = default;
  CompensatedSum(double sum, double rest) : sum_(sum), rest_(rest) {}
  void add(double value);
  void add(const CompensatedSum& other);
  double value() const;
  /// The value is the sum of the two, unless the first is not finite.
  double sum() const { return sum_; }
  double rest() const { return rest_; }

 private:
  double sum_ = 0, rest_ = 0;
};

/// Merges parts, in order, with the formula of Chan, Golub and LeVeque (1979).
class MergedMoments {
 public:
  MergedMoments() = default;
  /// From the values of the accessors below.
  MergedMoments(const Moments& total, CompensatedSum sum, CompensatedSum m2)
      : total_(total), sum_(sum), m2_(m2) {}

  void add(const Moments& part);
  /// Keeps all digits of the other's sums.
  void add(const MergedMoments& other);
  /// Subtracts from the count of NaN.
  void forget_nan(std::int64_t count) { total_.nan -= count; }
  Moments moments() const;

  const Moments& total() const { return total_; }  // without mean and m2
  const CompensatedSum& sum() const { return sum_; }
  const CompensatedSum& m2() const { return m2_; }

 private:
  /// The mean, with the remainder of its rounding.
  CompensatedSum mean() const;

  Moments total_;
  CompensatedSum sum_, m2_;
};

/// Computes moments in two passes over blocks of numbers: first all blocks to add(), then, after
/// next_pass(), all of them again.
class TwoPassMoments {
 public:
  static constexpr std::size_t kLanes = 8;

  /// The size of the storage of `block` must be a multiple of kLanes: it is overwritten beyond the
  /// end of `block`.
  void add(std::span<double> block);
  void next_pass();
  Moments moments() const;
  /// The same, with the digits that the rounding of the mean loses.
  MergedMoments merged() const;

 private:
  bool second_ = false;
  Moments moments_;
  CompensatedSum sum_, squares_;
};

}  // namespace batchfs
