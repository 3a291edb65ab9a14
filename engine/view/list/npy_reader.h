#pragma once
// Numbers of a .npy file, read block by block. Format: numpy.lib.format, versions 1 to 3.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "engine/view/list/named_file.h"

namespace batchfs {

/// The header of a .npy file.
struct NpyHeader {
  char kind = 'i';  // of the elements: i, u, f or b
  int itemsize = 8;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;

  std::int64_t elements() const;
};

/// Reads magic, version and header. Throws invalid_argument for a file that is not a .npy file, and
/// for elements that are not little-endian numbers or booleans of up to 8 bytes.
NpyHeader read_npy_header(NamedFile& file);

/// Calls `use(first, values)` for stretches of the elements, in the order of the file; `first` is
/// the number of the stretch's first element. Precondition: the header was just read. Throws
/// invalid_argument for a file that is shorter or longer than its header demands.
void read_npy_integers(
    NamedFile& file, const NpyHeader& header,
    const std::function<void(std::int64_t first, std::span<const std::int64_t>)>& use);
void read_npy_numbers(NamedFile& file, const NpyHeader& header,
                      const std::function<void(std::int64_t first, std::span<const double>)>& use);

}  // namespace batchfs
