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

/// Throws no_memory where a batch of `bytes`, with `operands` bytes for channels that are combined
/// (operand_memory()), does not fit into the budget.
inline void check_batch_memory(std::uint64_t bytes, std::uint64_t operands, std::uint64_t budget) {
  if (bytes <= budget && operands <= budget - bytes) return;
  const std::string parts = operands == 0 ? std::string()
                                          : " and " + format_size(operands) +
                                                " of operands of channels that are combined";
  throw Error(ErrorCode::no_memory, "a batch of " + format_size(bytes) + parts +
                                        (operands == 0 ? " is" : " are") +
                                        " larger than the memory budget of " + format_size(budget) +
                                        "; use a smaller batch size or a larger --memory");
}

inline Error chunk_larger_than_budget(std::uint64_t bytes, std::uint64_t budget) {
  return Error(ErrorCode::no_memory, "a chunk takes " + format_size(bytes) +
                                         " to decode, and the memory budget is " +
                                         format_size(budget) + "; use a larger --memory");
}

}  // namespace batchfs
