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

/// Reads a coordinate as xarray decodes it: where some of the times lie outside of datetime64[ns]
/// all of them are numbers, with a note in the decoding.
Dataset::Index read_index(const Variable& variable);

/// How xarray decodes a variable: by `variable.cf`, but times are numbers with a note where the
/// first or the last of them lies outside of datetime64[ns]. Reads these two; where they cannot be
/// read, it is `variable.cf`.
CfDecoding settled_decoding(const Variable& variable);

}  // namespace batchfs
