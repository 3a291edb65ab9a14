#pragma once
// "sources" of a view: the stores and groups that its variables are of, and how those after the
// first are joined to it.

#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/dataset/joined/concat_datasets.h"
#include "engine/dataset/joined/join_sources.h"

namespace batchfs {

struct SourceSpec {
  std::string name;
  std::string path;                 // in the view's file, for messages
  std::string store;                // of --store; empty: the command's own
  std::vector<std::string> stores;  // concatenated, in place of `store`
  std::vector<std::string> keys;    // of `stores`: the values of the braces, else the name
  ConcatRule concat;                // of those, and of a `store` that is a series of --store
  std::optional<std::string> group;
  std::vector<JoinedSource::Join> joins;
};

/// Throws with the JSON path.
std::vector<SourceSpec> parse_sources(const JsonRef& json);

/// Is it a valid name of a source or store: letters, digits and "_.-"?
bool is_source_name(const std::string& name);

/// "imerg:rain" with a source "imerg" names its variable "rain"; null: no source's. A name of the
/// form "model/hist:tas" is of another group of the first source, and "/imerg:rain" of its group
/// "imerg".
const SourceSpec* source_of(const std::vector<SourceSpec>& sources, const std::string& text);

/// The source of a view's document that a variable of its dataset is of; empty: it has no sources.
std::string source_name(const Json& document, const Variable& variable);
/// "imerg:" for a variable of a source but the first, for one of several concatenated stores the
/// store's name; else empty.
std::string source_prefix(const Json& document, const Variable& variable);

}  // namespace batchfs
