#pragma once
// Units of variables, as far as their text defines them.

#include <string>

#include "engine/dataset/dataset.h"

namespace batchfs {

/// The attribute "units"; empty: it has none.
std::string units_of(const Variable& variable);

/// Are numbers in both the same quantities? The usual spellings of degrees, metres and hectopascals
/// are known; others are the same where their text is.
bool are_same_units(const std::string& one, const std::string& other);

}  // namespace batchfs
