#pragma once
// Errors that several parts of the engine report.

#include <exception>
#include <string>

#include "engine/base/error.h"
#include "engine/base/strings.h"

namespace batchfs {

inline std::exception_ptr ending_error() {
  return std::make_exception_ptr(Error(ErrorCode::interrupted, "the mount is ending"));
}

inline Error batch_larger_than_budget(std::uint64_t bytes, std::uint64_t budget) {
  return Error(ErrorCode::no_memory,
               "a batch of " + format_size(bytes) + " is larger than the memory budget of " +
                   format_size(budget) + "; use a smaller batch size or a larger --memory");
}

inline Error chunk_larger_than_budget(std::uint64_t bytes, std::uint64_t budget) {
  return Error(ErrorCode::no_memory, "a chunk takes " + format_size(bytes) +
                                         " to decode, and the memory budget is " +
                                         format_size(budget) + "; use a larger --memory");
}

}  // namespace batchfs
