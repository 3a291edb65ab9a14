#pragma once
// Reading the file of "list".

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/positions.h"
#include "engine/view/list/list_spec.h"
#include "engine/view/list/sample_list.h"
#include "engine/view/list/start_rule.h"

namespace batchfs {

/// The fields of a view that rows are looked up in. Non-owning.
struct ListedView {
  const Dataset& dataset;
  const std::map<std::string, Positions>& selected;  // by dimension
  std::vector<StartRule> rules;                      // per window dimension
  /// Columns that are needed beside the starts, and the keys that name them.
  std::vector<std::pair<std::string, std::string>> columns;
};

/// Throws invalid_argument for a file that contradicts its extension or the digest, an unknown
/// column, and rows that do not fit, of which it names the first and counts all; not_supported
/// beyond 2^27 rows or 2 GiB of text. Blocks.
std::shared_ptr<const SampleList> read_list(const ListSpec& list, const ListedView& view);

}  // namespace batchfs
