#pragma once
// Numbers for people: the ends of a range and the marks of an axis look alike.

#include <string>

namespace batchfs {

/// "0.25", "301090": at most `digits` significant digits, but all digits of a whole part below
/// 1e15, so that 300000 is not "3e+05" beside 301090. Zero has no sign.
std::string number_text(double value, int digits);

}  // namespace batchfs
