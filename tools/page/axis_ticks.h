#pragma once
// Round numbers along an axis that begins at zero.

#include <string>
#include <vector>

namespace batchfs {

/// 1, 2 or 5 times a power of ten: the least with which at most `most` steps reach `range`. 1 if
/// that is not positive. With `whole` at least 1.
double round_step(double range, int most, bool whole = false);

/// The values of the ticks: 0, step, ... up to the first that reaches `largest`. At least two.
std::vector<double> ticks_to(double largest, int most, bool whole = false);

/// The same for bytes: round in the unit (powers of 1024) that the largest has.
std::vector<double> byte_ticks_to(double largest, int most);

/// Multiples of a round step from `from` to `to`.
std::vector<double> ticks_between(double from, double to, int most);

/// "0", "0.5".
std::string tick_text(double value);
/// "5000", "20k", "2.5M".
std::string count_tick_text(double count);
/// "20 MB".
std::string byte_tick_text(double bytes);

}  // namespace batchfs
