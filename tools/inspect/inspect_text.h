#pragma once
// What `batchfs inspect` writes for people.

#include <string>
#include <vector>

#include "tools/cli/text_layout.h"
#include "tools/inspect/inspected_array.h"

namespace batchfs {

/// Groups, arrays, what cannot be read, and commands to try next. Lines of arrays fit the layout's
/// columns, unless a name alone is wider; paths, URLs and commands stay whole.
std::string inspect_text(const OpenedStore& opened, const std::vector<InspectedArray>& arrays,
                         const TextLayout& layout);

/// The path of a node; the root is "/".
std::string path_text(const std::string& path);

/// How stored values become the array's values: "x 0.01 + 273.15", "missing -32767". Empty where
/// they are the same.
std::vector<std::string> decoding_words(const CfDecoding& cf);

}  // namespace batchfs
