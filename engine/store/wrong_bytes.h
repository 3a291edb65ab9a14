#pragma once
// What an object holds that cannot be read as what it should be: what web servers send in place of
// an object, for errors that say so.

#include <cstddef>
#include <span>
#include <string>

#include "engine/base/error.h"

namespace batchfs {

/// "it is gzip data: ..." and what to do; empty where the first bytes say nothing.
std::string describe_wrong_bytes(std::span<const std::byte> head);

/// The error with that, for bytes that it refuses.
Error with_wrong_bytes(const Error& error, std::span<const std::byte> bytes);

}  // namespace batchfs
