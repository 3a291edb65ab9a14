#pragma once
// Output of `batchfs inspect` for people.

#include <string>
#include <vector>

#include "tools/cli/text_layout.h"
#include "tools/inspect/inspected_array.h"

namespace batchfs {

/// Groups, arrays, unreadable parts, and commands to try next. Lines of arrays fit the layout's
/// columns, unless a name alone is wider; paths, URLs and commands stay whole.
std::string inspect_text(const OpenedStore& opened, const std::vector<InspectedArray>& arrays,
                         const TextLayout& layout);

/// The path of a node; the root is "/".
std::string path_text(const std::string& path);

/// The decoding of stored values: "x 0.01 + 273.15", "missing -32767". Empty if they are the
/// values.
std::vector<std::string> decoding_words(const CfDecoding& cf);

}  // namespace batchfs
