#pragma once
// The page that `batchfs report` writes: one HTML file with its pictures inside, nothing from
// elsewhere.

#include <string>
#include <vector>

#include "tools/monitor/activity.h"
#include "tools/monitor/timeline.h"

namespace batchfs {

struct Report {
  std::string place, store, made;  // made: when
  Timeline timeline;
  Activity activity;  // since the mount began
  double decode_amplification = 0, fetch_amplification = 0;
  std::vector<std::string> advice;
  std::string batch;  // HTML, see view_section(); empty: no picture of a batch
};

std::string report_page(const Report& report);

}  // namespace batchfs
