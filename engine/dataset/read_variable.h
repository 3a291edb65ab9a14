#pragma once
// Whole variables in memory: coordinates, labels, small variables. All functions block while the
// store is read, and are thread-safe.

#include "engine/dataset/dataset.h"

namespace batchfs {

/// Reads and decodes a whole variable; of a concatenated one, all parts. Strings of any length
/// become numpy's fixed-length strings, as long as the longest of them. Throws not_supported for an
/// unreadable variable, for times outside of datetime64[ns] and for strings of more than 1 GB;
/// corrupt for damaged chunks.
NdArray read_variable(const Variable& variable, Decode decode = Decode::cf);

/// Bytes of the values in memory; a string of any length counts as one of 16 characters.
std::uint64_t value_bytes(const Variable& variable);

/// Can a part of the values be read by itself, by read_part()?
bool is_read_in_parts(const Variable& variable);
/// The values of `count` positions from `first` on along the first dimension. Precondition:
/// is_read_in_parts(). Throws as read_variable().
NdArray read_part(const Variable& variable, std::int64_t first, std::int64_t count);

/// Reads a coordinate as xarray decodes it: where some of the times lie outside of datetime64[ns]
/// all of them are numbers, with a note in the decoding.
Dataset::Index read_index(const Variable& variable);

/// How xarray decodes a variable: by `variable.cf`, but times are numbers with a note where the
/// first or the last of them lies outside of datetime64[ns]. Reads these two; where they cannot be
/// read, it is `variable.cf`.
CfDecoding settled_decoding(const Variable& variable);

}  // namespace batchfs
