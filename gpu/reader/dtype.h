#pragma once
// Element types, from the numpy names in schemas to the type codes of other libraries' arrays.

#include <cstdint>
#include <string>

namespace batchfs::reader {

struct Dtype {
  std::string name;     // as in schema.json: "float32", "datetime64[ns]", "<U7"
  std::string typestr;  // as in __array_interface__: "<f4", "<M8[ns]"; "[...]", the descr, for
                        // structured types
  std::uint32_t itemsize = 0;
  /// DLPack's type code; -1 for types that DLPack has not (times, strings, structures).
  int dlpack_code = -1;
  int dlpack_bits = 0;
};

/// Throws not_supported for names it does not know.
Dtype parse_dtype(const std::string& name);

}  // namespace batchfs::reader
