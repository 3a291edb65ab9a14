#pragma once
// The part of a page about one view.

#include <string>

#include "tools/show/shown_view.h"

namespace batchfs {

/// A section with a heading of level 3 and this id.
std::string view_section(const ShownView& view, const std::string& id);

/// CSS that a section requires.
extern const char* const kViewStyle;

}  // namespace batchfs
