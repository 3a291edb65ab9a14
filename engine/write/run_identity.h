#pragma once
// Identifies the run that owns an output: by the object `.batchfs.json`, which the first process
// writes and every other one compares.

#include <string>

#include "engine/base/json.h"
#include "engine/store/output/output_store.h"
#include "engine/store/store.h"

namespace batchfs {

/// The key of the object that identifies the run.
inline constexpr const char* kRunKey = ".batchfs.json";

/// Takes the output for this run, or continues it. `identity`, an object, identifies the run: the
/// same command on the same store has the same identity. Throws invalid_argument when the output
/// holds something else, and names it; stale as check_identity(); access_denied or io when it
/// cannot be written.
void claim_output(OutputStore& output, const Json& identity);

/// Throws invalid_argument unless `found`, which the output holds, is `identity`; stale, naming the
/// arrays, where only the versions of the store differ: SourceVersions::digests() as "source".
void check_identity(const OutputStore& output, const Json& identity, const Json& found);

/// The identity that an output holds. Throws not_found where batchfs wrote none, corrupt.
Json read_identity(OutputStore& output);

/// Names a store without showing its place: the identity stays in the output.
std::string place_digest(const Store& store);

}  // namespace batchfs
