#pragma once
// Recognises bytes that are not the expected object, such as pages that web servers send instead,
// for error messages.

#include <cstddef>
#include <span>
#include <string>

#include "engine/base/error.h"

namespace batchfs {

/// "it is gzip data: ..." and what to do; empty where the first bytes show nothing.
std::string describe_wrong_bytes(std::span<const std::byte> head);

/// The error with that, for bytes that it refuses.
Error with_wrong_bytes(const Error& error, std::span<const std::byte> bytes);

}  // namespace batchfs
