#pragma once
// The report of one task of a scan as JSON, for the process that merges the reports.

#include "engine/base/json.h"
#include "engine/scan/verify_report.h"

namespace batchfs {

Json verify_part(const VerifyReport& report);
/// Throws invalid_argument for other JSON.
VerifyReport parse_verify_part(const JsonRef& json);

}  // namespace batchfs
