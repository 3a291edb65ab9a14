#pragma once
// The part of a page about one variable.

#include <map>
#include <string>

#include "tools/show/shown_variable.h"

namespace batchfs {

/// Coastlines shared by the maps of a page: each is in the page once.
class CoastSymbols {
 public:
  /// The id of a symbol that draws `path`.
  std::string id_of(const std::string& path);
  /// The symbols, to be placed anywhere in the page.
  std::string html() const;

 private:
  std::map<std::string, std::string> ids_;  // by path
};

/// A section with a heading of level 3 and this id.
std::string variable_section(const ShownVariable& variable, const std::string& id,
                             CoastSymbols& coasts);

/// The section of a picture of several bands.
std::string colours_section(const ShownVariable& picture, const std::string& id,
                            CoastSymbols& coasts);

/// Bars of a histogram with its range; `name` is for screen readers.
std::string histogram_picture(const SampleSummary& summary, const std::string& name,
                              const std::string& units);

/// Picture of the stored chunks, by position.
std::string presence_picture(const ChunkPresence& presence, const std::string& column_name,
                             const std::string& row_name, bool shards);

/// "1,234", "0.5 %": a share of a count; "below 0.1 %" instead of a share rounded to 0.
std::string share_text(std::int64_t part, std::int64_t all);

/// A value of a sample in few digits.
std::string value_text(double value);

/// CSS that a section requires.
extern const char* const kVariableStyle;

}  // namespace batchfs
