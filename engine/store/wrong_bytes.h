#pragma once
// Recognises bytes that are not the expected object, such as pages that web servers send instead,
// for error messages.

#include <cstddef>
#include <span>
#include <string>

#include "engine/base/error.h"
#include "engine/store/decompression.h"

namespace batchfs {

/// "it is gzip data: ..." and what to do; empty where the first bytes show nothing. `expected`: a
/// compression that the object has by itself, which is not the fault.
std::string describe_wrong_bytes(std::span<const std::byte> head,
                                 FileCompression expected = FileCompression::none);

/// The error with that, for bytes that it refuses.
Error with_wrong_bytes(const Error& error, std::span<const std::byte> bytes,
                       FileCompression expected = FileCompression::none);

}  // namespace batchfs
