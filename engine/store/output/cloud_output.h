#pragma once
// A prefix of a bucket as an output.

#include <memory>
#include <string>

#include "engine/store/output/output_store.h"

namespace batchfs {

/// s3://BUCKET/PREFIX, gs:// or az://, with the same credentials and options as for reading. An
/// object is one request, or, where the service takes parts and the object is large, several that
/// are joined at once. There are no locks. Throws as open_cloud_store().
std::shared_ptr<OutputStore> open_cloud_output(const std::string& url, const StoreConfig& config);

}  // namespace batchfs
