#pragma once
// The page that `batchfs show` writes: the contents of a store, with pictures, in one HTML file.

#include <string>
#include <utility>
#include <vector>

#include "tools/cli/store_options.h"
#include "tools/inspect/inspected_array.h"
#include "tools/show/shown_variable.h"
#include "tools/show/shown_view.h"

namespace batchfs {

struct ShowPage {
  static constexpr std::size_t kMaxRows = 2000;  // of the tables of arrays
  /// Total of the pictures of variables, and of those of batches: no more are added beyond it.
  static constexpr std::size_t kMaxPictureBytes = 4 << 20;
  static constexpr std::size_t kMaxSheetBytes = 2 << 20;  // of one batch
  static constexpr std::size_t kMaxViews = 24;

  std::string made;  // when
  const OpenedStore* opened = nullptr;
  const std::vector<InspectedArray>* arrays = nullptr;
  std::vector<ShownVariable> colours;  // pictures of several bands
  std::vector<ShownVariable> variables;
  std::vector<ShownView> views;
  std::vector<std::string> left_out;  // paths of variables without a section
  std::size_t more_views = 0;         // left out
};

/// Writes at most about 16 MB: names beyond the limits are counted and left out.
std::string show_page(const ShowPage& page);

}  // namespace batchfs
