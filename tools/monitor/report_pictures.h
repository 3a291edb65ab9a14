#pragma once
// The pictures of a report, as SVG inside of HTML. Colours are classes of the page's style.

#include <string>

#include "tools/monitor/timeline.h"

namespace batchfs {

/// A row for each reader: waiting and using in turn. Shows the end of long rows, and the first of
/// many readers.
std::string readers_picture(const Timeline& timeline);
/// Fetches and decodes in progress, over time.
std::string work_picture(const Timeline& timeline);
/// How many waits took how long.
std::string waits_picture(const Timeline& timeline);
/// Bytes per second that readers got, over time.
std::string throughput_picture(const Timeline& timeline);

}  // namespace batchfs
