#pragma once
// The screen of `batchfs top`, as lines.

#include <string>
#include <vector>

#include "tools/monitor/activity.h"

namespace batchfs {

/// The lines of the screen, none wider than `columns` and at most `rows` (0: unlimited). `title`
/// names the store and the mount point. The last line counts the readers that do not fit.
std::vector<std::string> top_screen(const Activity& activity, const std::string& title,
                                    std::size_t columns, std::size_t rows);

/// A heading and a line for each of the first `most` readers. Leaves out the least important
/// columns if `columns` (0: unlimited) are too few for all.
std::vector<std::string> reader_lines(const std::vector<Activity::Reader>& readers,
                                      std::size_t most, std::size_t columns);

/// "1.2 GB/s".
std::string rate_text(double bytes);
/// "1:02:03", "2 d 1:02:03".
std::string uptime_text(double seconds);
/// "2.4 ms": three digits and the unit that fits.
std::string duration_text(double seconds);
/// The first `columns` characters of UTF-8 text; a character that is cut is left out.
std::string cut_to(const std::string& text, std::size_t columns);

}  // namespace batchfs
