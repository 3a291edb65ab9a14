#pragma once
// A prefix of a bucket as an output.

#include <memory>
#include <string>

#include "engine/store/output/output_store.h"

namespace batchfs {

/// s3://BUCKET/PREFIX, with the credentials and options that reading takes. An object is one PUT,
/// so that at most 5 GB fit into one. There are no locks. Throws as open_cloud_store().
std::shared_ptr<OutputStore> open_s3_output(const std::string& url, const StoreConfig& config);

}  // namespace batchfs
