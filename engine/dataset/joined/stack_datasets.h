#pragma once
// Stacks datasets of several stores along a new dimension, as xarray.concat does: the members of an
// ensemble.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/dataset/joined/concat_datasets.h"

namespace batchfs {

/// Arrays with one more dimension in front, by original array: stacking twice returns the same
/// objects, so that their chunks are cached once.
using StackedArrays = std::map<std::shared_ptr<const Array>, std::shared_ptr<const Array>>;

/// Data variables have `rule.dim` as their first dimension, and so have coordinates whose values
/// differ; others are those of the first store, also those of more than 2^20 values. The
/// dimension's labels are `rule.labels`; without any, the values of a scalar coordinate of its name
/// that all stores have, else `keys`, as whole numbers where all of them are. Other dimensions must
/// have the same labels in all parts. Reads coordinates, blocking. Throws invalid_argument with
/// `rule.path` in front. Preconditions: `rule.is_new`; there is a part, and a key for each.
std::shared_ptr<const Dataset> stack_datasets(const std::vector<ConcatPart>& parts,
                                              const std::vector<std::string>& keys,
                                              const ConcatRule& rule, StackedArrays& arrays);

}  // namespace batchfs
