#pragma once
// Keys that no reader asks for, such as "b//.zattrs", and the documents that they may mean.

#include <optional>
#include <string>
#include <string_view>

namespace batchfs {

/// The metadata document of a node ("b/.zattrs") that `key` means if its path is normalised.
/// nullopt for a key in normal form, and for what is not such a document.
std::optional<std::string> meant_document(std::string_view key);

}  // namespace batchfs
