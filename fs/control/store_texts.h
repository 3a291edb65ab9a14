#pragma once
// Descriptions of a store: summaries for people, JSON for programs.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/dataset/dataset.h"
#include "engine/view/view.h"
#include "engine/zarr/hierarchy.h"

namespace batchfs {

/// An array as the mount shows it.
struct ArrayEntry {
  std::shared_ptr<const ArrayMetadata> metadata;
  std::shared_ptr<const Array> array;  // null when its values cannot be read
  std::string unsupported;             // why
  std::string values_header;           // of values.npy
};

/// References to the mount's contents, which do not change.
struct StoreContents {
  const std::string& url;  // without secrets
  const Hierarchy& hierarchy;
  const Dataset& dataset;
  std::span<const ArrayEntry> arrays;
  std::span<const std::shared_ptr<const View>> views;
};

/// arrays/NAME/summary.txt.
std::string array_summary(const ArrayEntry& entry);
/// summary.txt.
std::string store_summary(const StoreContents& contents);
/// store.json.
std::string store_json(const StoreContents& contents);

}  // namespace batchfs
