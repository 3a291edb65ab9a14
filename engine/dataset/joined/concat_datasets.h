#pragma once
// Concatenates datasets of several stores along a dimension, as xarray.concat does: for example
// one store a year.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"

namespace batchfs {

struct ConcatRule {
  /// nullopt: the one dimension along which labels or lengths of the stores differ.
  std::optional<std::string> dim;
  /// The part that provides a label that several have. Not `none`: labels are sorted, and may be in
  /// any part.
  enum class Prefer : std::uint8_t { none, first, last } prefer = Prefer::none;
  std::string path;  // in front of errors: "sources.era"
  /// `dim` is a new dimension, which no store has: see stack_datasets(). Its labels need no order.
  bool is_new = false;
  std::vector<Json> labels = {};  // of the new dimension, one for each store; empty: by default
};

struct ConcatPart {
  std::string name;  // of the store, for messages: "era.1979"
  std::shared_ptr<const Dataset> dataset;
};

/// Variables that have the dimension are the parts one after the other, each with its own chunks,
/// codecs, fill values, scale and offset; others are those of the first part. Variables that differ
/// otherwise, in dimensions, decoded type or units, are unreadable, with the reason. The parts'
/// labels must follow one another, ascending or descending, unless one is preferred; gaps are
/// allowed. Reads coordinates, blocking. Throws invalid_argument with `rule.path` in front.
/// Precondition: `parts` is not empty.
std::shared_ptr<const Dataset> concat_datasets(const std::vector<ConcatPart>& parts,
                                               const ConcatRule& rule);

}  // namespace batchfs
