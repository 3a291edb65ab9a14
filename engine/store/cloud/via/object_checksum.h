#pragma once
// Checksums of whole objects that services name in the headers of their answers: they detect damage
// on a cache's disk.

#include <optional>

#include "engine/store/http/http_client.h"

namespace batchfs {

/// Does the body fit the checksum that the answer names? nullopt: the body is not the whole object,
/// or the answer names no checksum of it that is known here:
///   x-amz-checksum-sha256, x-goog-hash (md5), Content-MD5, x-ms-blob-content-md5;
///   ETag, where S3 uses the MD5 sum: 32 hexadecimal digits, and no key of the customer or of KMS.
/// Never throws for bad headers.
std::optional<bool> fits_checksum(const HttpResponse& response);

}  // namespace batchfs
